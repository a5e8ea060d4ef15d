// The steps of a call that goes through its links once, in slots of a few bytes, worked out: which links each waits
// for, where its pieces lie, and how long they are. A small call that is made again differs by its buffers and its
// number alone, so nothing of this has to be found anew.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/lending.h"
#include "engine/stores.h"
#include "kernels/host/combine.h"
#include "kernels/layout.h"
#include "link/link.h"
#include "schedule/schedule.h"

namespace tutti::engine {

// Where a step reads or writes.
struct ShortPlace {
  schedule::Operand::Kind kind = schedule::Operand::Kind::kInput;
  size_t offset = 0;             // into the input or the output
  std::byte* scratch = nullptr;  // of that kind
  link::RecvEnd* in = nullptr;   // of a link that is read
  link::SendEnd* out = nullptr;  // of one that is written
};

struct ShortStep {
  uint32_t number = 0;            // of the schedule's
  uint32_t count = 0, bytes = 0;  // of the payload of each slot
  bool copies = false;            // its one source is stored as it is
  bool finalises = false;
  Stores* stores = nullptr;          // of the one slot that it fills with a copy; null: not so, or it is too short
  kernels::TinySum* sums = nullptr;  // what adds so few; null: combine() does
  kernels::TinyPairSum* sumsTwo = nullptr;  // the same of two sources, for one destination; null: they are others
  // Each a part of the lists below.
  std::span<link::RecvEnd* const> ins;
  std::span<link::SendEnd* const> outs;
  std::span<const ShortPlace> from, to;
};

struct ShortSteps {
  std::vector<ShortStep> steps;  // that have something to do, in their order; empty: the call is no short one
  std::vector<link::RecvEnd*> ins;
  std::vector<link::SendEnd*> outs;
  std::vector<ShortPlace> from, to;

  // For all calls of the schedule: working them out allocates nothing, and moves none of the lists.
  void reserve(const schedule::Schedule& schedule);
  void clear() noexcept { steps.clear(), ins.clear(), outs.clear(), from.clear(), to.clear(); }
};

// What is longer is worth another look: at storing it once for several peers; among two ranks, at single copies.
inline constexpr size_t kMostShortBytes = 4 << 10, kMostShortOfTwo = LendingTrial::kLeastBytes - 1;

// What a lane has to work with.
struct ShortMeans {
  const schedule::Schedule& schedule;
  std::span<link::RecvEnd* const> ins;   // as Schedule::inPeers
  std::span<link::SendEnd* const> outs;  // as Schedule::outPeers
  std::byte* scratch;
  uint32_t slotBytes;
  std::span<Stores> stores;  // of each step
};

void workOut(const ShortMeans& means, const kernels::Layout& layout, const kernels::Arithmetic& arithmetic,
             ShortSteps& all) noexcept;

}  // namespace tutti::engine
