// How each device reaches each other, and at what bandwidth.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// From the best to the worst.
enum class PathType : uint8_t {
  kLocal,          // LOC: the same device, or a NIC and its port
  kNvLink,         // NVL: NVLinks, also through NVSwitches
  kNvLinkRelayed,  // NVB: NVLinks through one other GPU
  kC2c,            // C2C: a GPU's coherent link to its processor
  kSwitch,         // PIX: one PCI switch at most
  kSwitches,       // PXB: several PCI switches
  kRelayed,        // PXN: NVLinks to a GPU that shares switches with the NIC, and through those
  kHost,           // PHB: through the processor of one memory node
  kSockets,        // SYS: between memory nodes
  kNetwork,        // NET: out of the host
  kNone,           // DIS
};
std::string_view nameOf(PathType type);  // "NVL"

struct Path {
  PathType type = PathType::kNone;
  double gigabytes = 0;  // a second: the least of the links that it takes
  int hops = 0;          // links
  friend bool operator==(const Path&, const Path&) = default;
};

// Of all pairs of devices the best path: that of the least type, of the greatest bandwidth among those, of the fewest
// hops among these. A value: made once, takes time and memory in the square of the devices.
class Paths {
 public:
  explicit Paths(const System& system);
  const Path& between(int from, int to) const { return paths_[static_cast<size_t>(from) * count_ + to]; }

 private:
  Path& at(int from, int to) { return paths_[static_cast<size_t>(from) * count_ + to]; }

  size_t count_;
  std::vector<Path> paths_;
};

}  // namespace tutti::topology
