// What an algorithm costs, in steps, messages and bytes: what it gives the ranks to do, apart from any machine. A
// machine's prices for these are src/plan's.
//
// The textbook costs of collective algorithms (Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication:
// theory, practice, and experience", 2007; Thakur, Rabenseifner, Gropp, "Optimization of collective communication
// operations in MPICH", 2005; Sanders, Speck, Träff, "Two-tree algorithms", 2009), with a rank's own stores, the
// hand-over and the reduction told apart, since over shared memory all three are the core's work.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/slots.h"
#include "base/types.h"

namespace tutti::schedule {

// What is asked for.
struct Request {
  Collective collective = Collective::kAllReduce;
  size_t bytes = 0;          // the whole message (kSplit); with a count a rank: one rank's part
  bool inRankOrder = false;  // only by algorithms that add in the order of the ranks, whatever they cost
};

// What Request::bytes is of a message whose bytes are counted as nccl-tests do: of all ranks' parts together.
constexpr size_t requestBytes(Collective collective, size_t bytes, int ranks) noexcept {
  return partsPerRank(plainOf(collective)) ? bytes / static_cast<size_t>(ranks) : bytes;
}

// Among how many.
struct Scale {
  int ranks = 1;
  int hosts = 1;
  int ranksPerHost = 1;                      // of the fullest host
  double ranksPerCore = 1;                   // of the most crowded cores; above 1 the ranks take turns
  int cores = 0;                             // that share out the ranks of the one host there is; 0: none do
  bool onOneCore = false;                    // all of them are
  int lanes = 1;                             // so many of these at once, on the same cores
  uint32_t slotBytes = slots::kPricedBytes;  // of a link, as far as pipelines go
};

// What one rank does, in bytes apart from the number of messages.
struct Load {
  double sent = 0;      // stored into links
  double received = 0;  // taken from links, and stored to where they belong
  double combined = 0;  // of those received: the ones added to something
  double messages = 0;  // received
  double repeated = 0;  // of those sent: what goes over another link in the same step, and may be stored once for both
};

// A collective under one algorithm.
struct Workload {
  double steps = 0;    // dependent hand-overs, one after the other
  Load busiest;        // of the rank with most to do
  Load mean;           // over all ranks: what counts when ranks share the cores
  double filling = 0;  // bytes of which ranks wait for the passage beside their own work, while a pipeline fills
  double handed = 0;   // rounds of an all-reduce whose sums are handed out before the next round
  double kept = 0;     // bytes of the input that go by way of slots in place, where sums would not wait to go over them
  double skewed = 0;   // bytes that steps wait for after other steps: of some of them, as ranks are never in step
  double fan = 1;      // peers whose flows meet on the way to one rank
  double crossings = 1;  // the busiest host's outgoing bytes in units of busiest.sent
  double crossers = 1;   // so many of a host's ranks send those, each as much as the others
};

// Whom a rank speaks to, one step after another, when all ranks do the same.
struct Pattern {
  double hops = 1;       // steps until each rank's part has reached all
  double messages = 1;   // that a rank takes in these
  double fan = 1;        // peers of one receiver whose flows meet in the network
  double crossings = 1;  // as Workload::crossings
  double crossers = 1;   // as Workload::crossers
};
Pattern neighbours(const Scale& scale);  // a ring
Pattern doubling(const Scale& scale);    // peers at a distance that doubles
Pattern everyone(const Scale& scale);    // all at once

// Whether ranks that send their whole inputs in place send copies of them: sums of two ranks wait until what they go
// over has left (engine::mayWriteBehind), but for those of a stage.
constexpr bool keepsInput(const Scale& scale) noexcept { return scale.ranks > 2 || scale.lanes > 1; }

int log2Ceil(int ranks) noexcept;  // steps of what doubles

// Every rank does the same: in `passes` passes of the pattern it sends and takes `bytes` in all.
Workload evenly(const Scale& scale, const Pattern& pattern, int passes, double bytes, double combined);

// The same where each rank stores that less.
Workload repeating(Workload work, double repeated);

// A collective without a root, whose parts go once to where they belong by one pattern: an all-reduce in two passes,
// the others in one.
Workload inParts(const Request& request, const Scale& scale, const Pattern& pattern);

// A pipeline of chunks over `depth` hops: the first chunk pays for the way, the rest follow.
void fillPipeline(Workload& work, const Scale& scale, double depth, double chunk);

// One rank has a link to every other; `out` and `in` are the bytes that it sends and takes, `part` what each other has
// of them.
Workload star(const Scale& scale, double out, double in, double part, bool combines);

}  // namespace tutti::schedule
