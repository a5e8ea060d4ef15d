// Which steps may go on before their turn: one system call for many slots takes less than one for each, and a rank that
// shares its core does more in each of its turns.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace tutti::engine {

enum class Early : uint8_t {
  kNever,
  kApart,  // where input and output are not the same memory
  kAlways,
};

// Of each step: whether it may put what it receives into the output as far as it is there. Those that only copy from a
// link to the output, of which no other step touches that segment.
std::vector<Early> earlyOf(const schedule::Schedule& schedule);

// How far a step may post later rounds, as far as its links have room: as long as no other step would post to one of
// these links meanwhile, and what it posts is there.
struct Ahead {
  static constexpr size_t kAll = SIZE_MAX;
  bool may = false;
  size_t before = kAll;  // rounds of it that are posted before another step posts to one of its links
  size_t after = kAll;   // rounds that those which do so before it, or make what it posts, are further than it

  // How many rounds it may post at once in that round, of so many: that one at least.
  size_t roundsFrom(size_t round, size_t rounds) const noexcept {
    const bool isAlone = after >= rounds - round;
    return may && isAlone && before > round ? std::min(rounds, before) - round : 1;
  }
};

// Of each step. Those may that copy the input, or a segment of the output that only one other step writes, to links,
// and perhaps the input to a segment of the output which no other step touches: each link carries the same then, and
// nothing that is written is read by others.
std::vector<Ahead> postsAheadOf(const schedule::Schedule& schedule);

// Whether an all-reduce in place may send from the caller's memory although its sums go over that: each waits until
// what it goes over has left. Of two ranks, where this one posts its whole input and nothing else, and so the other
// one: a link of theirs then holds no more than the receiver has room for, as is proved of links whose posts wait for
// room.
bool mayWriteBehind(const schedule::Schedule& schedule);

}  // namespace tutti::engine
