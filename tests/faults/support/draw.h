// What a session does, drawn by chance: the same on every rank, since each draws from the same seed.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "faults/support/operation.h"

namespace tutti::faults {

// A communicator of a session: a world of its own, or a split of an earlier one.
struct CommunicatorSpec {
  std::string transports;
  int parent = -1;
  uint64_t salt = 0;
  int channels = 0;
  int colorOf(int rank) const noexcept;  // in the parent: 0, 1 or TUTTI_SPLIT_NOCOLOR
};

struct SessionSpec {
  int ranks = 2, streams = 0;
  std::vector<CommunicatorSpec> communicators;
};

struct Item {
  Operation operation;
  int communicator = 0;
  int stream = -1;  // -1: in the calling thread
};

// Operations that are called one after the other, maybe in a group, before all are waited for.
struct Step {
  bool grouped = false;
  std::vector<Item> items;
};

class Draw {
 public:
  // `variant`: the transports of all communicators, or "mix": several.
  Draw(uint64_t seed, const std::string& variant);
  const SessionSpec& session() const noexcept { return session_; }
  Step step();
  // No operation of more elements from now on.
  void limitCounts(size_t most) noexcept { mostElements_ = most; }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  size_t drawCount();
  Operation drawOperation();

  std::mt19937_64 random_;
  SessionSpec session_;
  size_t mostElements_ = 600'000;
};

}  // namespace tutti::faults
