// What the way from one device to another takes of a system's links, of which each direction carries so much.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "topology/paths.h"
#include "topology/system.h"

namespace tutti::rings {

// Directions of links, by their numbers here: each GB/s of a flow counts once on each of them.
using Route = std::vector<uint32_t>;

// The links of a system as something to be shared out. Ways are those of `paths`: over NVLink directly or through
// NVSwitches, else along the tree, and between memory nodes from one to the other. A way that leaves the host is none.
class Routes {
 public:
  Routes(const topology::System& system, const topology::Paths& paths);

  // Empty where there is no way inside the host.
  Route between(int from, int to);
  // GB/s of each direction, in the order of their numbers: of those that any route so far takes.
  const std::vector<double>& capacities() const noexcept { return capacities_; }

 private:
  enum class Way : uint8_t { kUp, kDown, kToSwitches, kFromSwitches, kDirect, kSockets };

  uint32_t number(Way way, int a, int b, double gigabytes);
  void overNvLink(Route& route, int from, int to);
  void relayed(Route& route, int from, int to);
  bool alongTheTree(Route& route, int from, int to);
  void climb(Route& route, Way way, int from, int above);
  int relayOf(int from, int to) const;
  double linkOf(int a, int b, topology::LinkKind kind) const;
  double linkUp(int device) const;
  bool gpuAt(int device) const { return system_.devices[device].kind == topology::DeviceKind::kGpu; }

  const topology::System& system_;
  const topology::Paths& paths_;
  std::vector<double> toSwitches_;  // of each device: its NVLinks to NVSwitches
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<double> capacities_;
};

}  // namespace tutti::rings
