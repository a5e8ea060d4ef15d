// The two ends of one edge, each with a bell of its own, for tests.
#pragma once
#include <array>
#include <memory>

#include "link/registry.h"
#include "process/fd.h"
#include "support/oob_pair.h"

namespace tutti::test {

class EdgePair {
 public:
  EdgePair(uint32_t slotBytes, uint32_t depth);
  link::Edge& edge(int side) { return edges_[side]; }
  link::Doorbell& bell(int side) { return *edges_[side].selfBell; }

 private:
  std::array<UniqueFd, 2> files_;
  std::array<UniqueMap, 2> pages_;
  std::array<link::Edge, 2> edges_;
};

using ConnectionPair = std::array<std::unique_ptr<link::Connection>, 2>;

// Opens `low` and `high` (as a rule the same transport) at the two ends and advances both in turn until both stand.
// Throws what they throw, and Error(kTimeout) after 20 seconds.
ConnectionPair connect(EdgePair& edges, MeetingPair& meetings, link::Transport& low, link::Transport& high);

}  // namespace tutti::test
