// The hosts of a communicator on GPUs together: in which order their ranks come, and what the links carry. Pure: every
// rank makes the same of what all have been told.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "topology/peer_info.h"

namespace tutti::site {

struct Site {
  std::vector<int> within;  // as schedule::Shape has it; empty: in the order of the ranks' numbers
  // As plan::DeviceMachine has them, of the host that has least; 0 where no host told.
  double gpuGBs = 0, ringGBs = 0, nicGBs = 0, networkGBs = 0;
  std::string text;  // "by the NVLinks: 0 3 2 1, …": the order, and where it comes from, or why there is none
};

// `words`: of each rank what it told (site/at_hand.h), empty where that was nothing. Hosts of which nothing is known
// keep the order of the numbers, and limit nothing. Throws Error(kRemote) for words that no rank of this communicator
// says.
Site siteOf(std::span<const topology::PeerInfo> infos, std::span<const Bytes> words);

}  // namespace tutti::site
