// An algorithm is one row: its name, the collectives that it has, the builder of its schedules, and its cost. Row,
// builder and cost stand in one file each: ring.cc, tree.cc, …
//
// docs/extending.md shows how to add one. A program (a test) may also register a row of its own, which is then found,
// proved, forced and run like those that are built in.
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/slots.h"
#include "schedule/schedule.h"
#include "schedule/workload.h"

namespace tutti::schedule {

// Who takes part in a collective.
struct Shape {
  Collective collective = Collective::kAllReduce;
  int size = 1;
  int root = 0;  // rooted collectives only
  // groupOf[r] numbers the host (or other island) of rank r, for the hierarchical algorithm, and for the order of
  // rings and trees; empty: one group.
  std::vector<int> groupOf;
  // within[r]: how early rank r comes among those of its host, in rings and trees; empty: by the numbers of the ranks.
  std::vector<int> within{};
  int depth = slots::kDepth;  // slots that a link has: schedules that would have more under way keep to it
  bool bothWays = false;      // whether a chain goes both ways around the ring from its root
};

// One algorithm among some of the ranks, as a part of another.
struct Stage {
  Algorithm algorithm = Algorithm::kRing;
  Request request;
  Scale scale;
};

struct AlgorithmRow {
  std::string_view name;  // in lower case; TUTTI_ALGO takes it
  // Those that it has: a barrier where all-reduce is, a v-variant where its plain sibling is. Those whose counts are
  // private only where every rank has a link to every other, too: nobody can hand on a part whose length it does not
  // know.
  std::span<const Collective> collectives;
  // This rank's part. A pure function, which knows no transport, no device and no byte count; build() has checked the
  // shape, and that there is more than one rank.
  Schedule (*build)(const Shape& shape, int rank) = nullptr;
  // The cost of a plain collective that it has, among two ranks or more. Null: nothing is known, and the algorithm is
  // used where it is forced.
  Workload (*workload)(const Request& request, const Scale& scale) = nullptr;
  // Where it is two others, one after the other; null: it never is.
  bool (*stages)(const Request& request, const Scale& scale, std::array<Stage, 2>& stages) = nullptr;
  // Why it is no use among so many; empty: it is. Null: it always is.
  std::string (*objection)(const Scale& scale) = nullptr;
  // Whether ranks speak to those alone that are next to them in the row (row.h): what its order carries counts then.
  bool alongTheRow = false;
  // Whether every rank has a link to every other.
  bool linksToAll = false;
  // Whether one slot carries a segment of nearly every rank. Null: never.
  bool (*packsAllRanks)(Collective collective, int ranks) = nullptr;
  // Whether each element is made in one step, of all ranks' operands in the order of the ranks: the same bits as every
  // other such algorithm, wherever the ranks are.
  bool addsInRankOrder = false;

  bool has(Collective collective) const noexcept;
  bool can(const Request& request) const noexcept;
};

// The most that there may be: a slot's fingerprint has 4 bits for 1 + the number of an algorithm (link/fifo.h).
inline constexpr int kMostAlgorithms = 15;

// How many there are, numbered from 0 on: those of the enumeration, then those that were registered.
int algorithmCount() noexcept;
// Throws Error(kInternal) for a number that no algorithm has.
const AlgorithmRow& rowOf(Algorithm algorithm);
// Throws Error(kInvalidArgument) that lists the names. In any case of letters.
Algorithm algorithmByName(std::string_view name);

// Adds a row, which has to stay where it is; before the first communicator, and in the same order on every rank. Throws
// Error(kInvalidArgument) where the name is taken, or kMostAlgorithms are there.
Algorithm registerAlgorithm(const AlgorithmRow& row);

// All that there are, in the order of their numbers.
std::vector<Algorithm> allAlgorithms();
// The algorithms that this collective has, in the order of their numbers; send/receive has none, and is built by
// buildSend / buildReceive.
std::vector<Algorithm> algorithmsFor(Collective collective);
// Those of them that can do what is asked for.
std::vector<Algorithm> algorithmsFor(const Request& request);

// This rank's schedule. Throws Error(kInvalidArgument) for an algorithm that the collective lacks, naming those it has.
Schedule build(Algorithm algorithm, const Shape& shape, int rank);

// One side of a message between two ranks: a schedule of one step, segment 0 of 1 (SegmentMap::kSplit).
Schedule buildSend(int rank, int size, int peer);
Schedule buildReceive(int rank, int size, int peer);
// Both at once, from this rank's input to its own output (a message to oneself).
Schedule buildSelf(int rank, int size);

}  // namespace tutti::schedule
