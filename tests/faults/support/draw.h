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
  std::string algorithm;                 // forced; empty: the library chooses
  bool sealed = false;                   // what goes over a network is encrypted
  int colorOf(int rank) const noexcept;  // in the parent: 0, 1 or TUTTI_SPLIT_NOCOLOR
};

struct SessionSpec {
  int ranks = 2, streams = 0;
  int processes = 1;
  int processOf(int rank) const noexcept { return rank % processes; }
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
  // `variant`: the transports of all communicators, or "mix": several. "processes": a rank each, "mixed": some with
  // several ranks, over what reaches other processes.
  Draw(uint64_t seed, const std::string& variant);
  const SessionSpec& session() const noexcept { return session_; }
  Step step();
  // From now on, some reductions of values whose results are rounded.
  void mayRound() noexcept { rounds_ = true; }
  // From now on, some calls with a configuration of their own.
  void mayConfigure() noexcept { configures_ = true; }
  // No operation of more elements from now on.
  void limitCounts(size_t most) noexcept { mostElements_ = most; }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  std::string drawTransports(const std::string& variant);
  size_t drawCount();
  Operation drawOperation();
  void configure(Operation& operation);

  std::mt19937_64 random_;
  SessionSpec session_;
  size_t mostElements_ = 600'000;
  bool rounds_ = false, configures_ = false;
};

}  // namespace tutti::faults
