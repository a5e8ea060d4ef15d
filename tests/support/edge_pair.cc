#include "support/edge_pair.h"

#include <new>

#include "base/deadline.h"
#include "base/error.h"
#include "link/edge_memory.h"
#include "support/patience.h"

namespace tutti::test {

EdgePair::EdgePair(uint32_t slotBytes, uint32_t depth) {
  for (int side = 0; side < 2; ++side) {
    files_[side] = createMemoryFile("tutti-test-bell", link::kBellFileBytes);
    pages_[side] = mapShared(files_[side].get(), link::kBellFileBytes);
    link::Edge& edge = edges_[side];
    edge.self = side == 0 ? 2 : 5;
    edge.peer = side == 0 ? 5 : 2;
    edge.selfBell = new (pages_[side].data()) link::Doorbell;
    edge.selfBellFd = files_[side].get();
    edge.slotBytes = slotBytes;
    edge.depth = depth;
    edge.selfInfo = edge.peerInfo = topology::describeSelf();
    edge.selfInfo.hostName = side == 0 ? "lowhost" : "highhost";
    edge.peerInfo.hostName = side == 0 ? "highhost" : "lowhost";
  }
}

ConnectionPair connect(EdgePair& edges, MeetingPair& meetings, link::Transport& low, link::Transport& high) {
  std::array<std::unique_ptr<link::Setup>, 2> setups{low.open(edges.edge(0), *meetings.ends[0]),
                                                     high.open(edges.edge(1), *meetings.ends[1])};
  ConnectionPair made;
  const auto deadline = Deadline::in(longWait());
  while (!made[0] || !made[1]) {
    for (int side = 0; side < 2; ++side)
      if (!made[side]) made[side] = setups[side]->advance();
    if (deadline.passed()) throw Error(ErrorCode::kTimeout, "the two ends did not connect");
  }
  return made;
}

}  // namespace tutti::test
