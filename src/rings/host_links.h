// What the links of a host carry for ranks on its GPUs: in a ring, among all of them, and into the network. Ranks
// follow each other in one ring, whose order all channels have, so it is the widest one ring that is looked for, and
// not as many as there can be (search.h).
//
// Between GPUs that have no NVLink of their own data goes over PCI: nothing hands it on from GPU to GPU.
#pragma once
#include <vector>

#include "topology/paths.h"
#include "topology/system.h"

namespace tutti::rings {

struct HostLinks {
  std::vector<int> order;  // of the ranks in the ring, those of a GPU together; the last one sends to the first
  bool asNumbered = true;  // its GPUs come as their ranks are numbered, by the first of each
  topology::PathType along = topology::PathType::kLocal;  // the worst way between neighbours in it
  topology::PathType among = topology::PathType::kLocal;  // the worst way between any two
  // GB/s of a rank in each direction: to the next in the ring, all at the same time; to the one that is reached worst.
  // 0: there is no such way, or no two GPUs.
  double ringGBs = 0, pairGBs = 0;
  // GB/s of the rank that has least through its NIC, in each direction: while it alone sends, and while all ranks of
  // the host do, which may share it. 0: there is no NIC.
  double nicGBs = 0, networkGBs = 0;
};

// `gpus`: of each rank of the host the position in System::devices; several ranks may have one. The order of the
// numbers stays where no other order has better ways or carries more. Deterministic. The search for an order is
// exhaustive where that takes some ten thousand tries, as for eight GPUs; beyond that it keeps the best that it has
// seen.
HostLinks hostLinks(const topology::System& system, const std::vector<int>& gpus);

}  // namespace tutti::rings
