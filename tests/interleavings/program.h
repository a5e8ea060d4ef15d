// What the ranks of a job do, drawn by chance: the same program on each, as users write them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "interleavings/network.h"
#include "schedule/algorithm.h"

namespace tutti::interleavings {

// One collective, or one message between two ranks.
struct Item {
  int communicator = 0;
  int stream = 0;  // 0: the calling thread
  Collective collective = Collective::kSendRecv;
  schedule::Algorithm algorithm = schedule::Algorithm::kDirect;
  int root = 0, channels = 1;
  int from = -1, to = -1;                   // of a message; they may be one rank
  size_t count = 0;                         // elements
  unsigned inPlace = 0;                     // for which ranks, a bit each
  std::vector<std::vector<size_t>> counts;  // all-to-all-v, gather-v, scatter-v: [from][to]

  // A message has two ends, which may be one rank's; of a collective each rank has one part, called its sending one.
  bool involves(int rank, bool sends) const noexcept {
    return collective != Collective::kSendRecv ? sends : rank == (sends ? from : to);
  }
};

struct Program {
  int ranks = 2, communicators = 1, streams = 0;
  bool lends = false;  // streams send long messages from the ranks' buffers
  uint32_t slotBytes = 64, depth = 8;
  std::vector<int> groupOf;
  std::vector<std::vector<Item>> groups;  // in the order in which every rank calls them

  schedule::Shape shapeOf(const Item& item) const { return {item.collective, ranks, item.root, groupOf}; }
};

inline constexpr size_t kMostElements = 300, kTimesLonger = 100;  // of what is lent

Program drawProgram(Chance& chance);

}  // namespace tutti::interleavings
