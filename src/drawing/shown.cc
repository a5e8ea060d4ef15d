#include "drawing/shown.h"

#include <fmt/format.h>

#include "drawing/labels.h"

namespace tutti::drawing {
namespace {

using topology::DeviceKind;
using topology::System;

class Choosing {
 public:
  explicit Choosing(const System& system) : system_(system) {
    shown_.inTree.resize(system.devices.size());
    shown_.inFabric.resize(system.devices.size());
  }

  Shown run() {
    size_t switches = 0;
    for (const int each : devicesOf(system_, DeviceKind::kNvSwitch))
      if (nvlinksOf(system_, each) > 0 && ++switches <= kMostNvSwitches) shown_.inFabric[each] = true;
    for (const int node : devicesOf(system_, DeviceKind::kNuma)) add(node);
    shown_.leftOut = leftOut();
    return shown_;
  }

 private:
  bool isLeaf(int device) const {
    const DeviceKind kind = system_.devices[device].kind;
    return kind == DeviceKind::kGpu || kind == DeviceKind::kNic;
  }

  // With what is below it. Who is above is there, so what is there hangs together.
  void add(int device) {
    const bool linked = system_.devices[device].kind == DeviceKind::kNvSwitch && nvlinksOf(system_, device) > 0;
    if (linked || system_.devices[device].kind == DeviceKind::kPort || count_ == kMostInTree) return;
    shown_.inTree[device] = true;
    ++count_;
    if (isLeaf(device)) return;
    for (const int child : childrenOf(system_, device)) add(child);
  }

  std::string leftOut() const {
    constexpr const char* kNames[] = {"memory nodes", "switches", "GPUs", "NVSwitches", "NICs"};
    std::string text;
    for (size_t kind = 0; kind < std::size(kNames); ++kind) {
      size_t count = 0;
      for (const int each : devicesOf(system_, static_cast<DeviceKind>(kind))) count += !shown_.has(each);
      if (count > 0) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", kNames[kind], count);
    }
    if (text.empty()) return "";
    return fmt::format("Left out are {}. A picture has at most {} devices and {} NVSwitches, none below a GPU or NIC.",
                       text, kMostInTree, kMostNvSwitches);
  }

  const System& system_;
  Shown shown_;
  size_t count_ = 0;
};

}  // namespace

Shown shownOf(const System& system) { return Choosing(system).run(); }

}  // namespace tutti::drawing
