// Times of collectives with every algorithm forced in turn, over operations, transports, numbers of ranks and sizes:
// what prices are fitted to, and what choices are judged by.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/command_name.h"
#include "base/types.h"
#include "schedule/algorithm.h"

namespace tutti::tune {

// One operation among ranks of one host, at one size.
struct Cell {
  Collective collective = Collective::kAllReduce;
  std::string transport;  // between all of them: "p2p" (threads of a process), "shm" or "tcp" (processes)
  int ranks = 2;
  size_t bytes = 0;  // as schedule::Request has it
  // Microseconds of a call, one of each round.
  std::map<schedule::Algorithm, std::vector<double>> times;

  schedule::Request request() const { return {collective, bytes}; }
  // The median of the rounds.
  double us(schedule::Algorithm algorithm) const;
  schedule::Algorithm fastest() const;
};

struct Sweep {
  std::string about;   // the machine, and when
  uint32_t cores = 1;  // that the ranks shared
  std::vector<Cell> cells;
};

// A file's JSON. docs/tuning.md has its keys.
std::string toJson(const Sweep& sweep);
// Throws Error(kInvalidArgument) with `path` in front for what cannot be read or is no sweep.
Sweep readSweep(const std::string& path);

// The other way of commandName(). Throws Error(kInvalidArgument) that lists the names.
Collective collectiveByCommand(const std::string& name);
// Whether its time is that of a barrier behind it, too. In a loop without one, the root of a broadcast runs ahead of
// the others, and chains look better than whoever waits for the result finds them. What all ranks take from all ranks
// keeps them together by itself.
constexpr bool endsInBarrier(Collective collective) noexcept { return hasRoot(collective); }
// Algorithms to measure. On one host the hierarchical one is what its stages are, but where ranks share cores.
std::vector<schedule::Algorithm> alternatives(Collective collective);
// Those that more than one algorithm has: there is nothing to choose for the others.
std::vector<Collective> tunable();

}  // namespace tutti::tune
