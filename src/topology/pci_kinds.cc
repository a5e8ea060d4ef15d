#include "topology/pci_kinds.h"

namespace tutti::topology {
namespace {

constexpr std::string_view kNvidia = "0x10de", kAmd = "0x1002";

// A 3D controller, or a display controller of NVIDIA or AMD; AMD's newest are accelerators ("12").
bool isGpu(std::string_view start, std::string_view vendor) {
  if (start == "0x0302") return true;
  if (vendor == kNvidia) return start == "0x0300";
  return vendor == kAmd && (start.starts_with("0x03") || start == "0x1200");
}

}  // namespace

std::optional<DeviceKind> usefulKind(const Pci& pci) {
  const std::string_view code = pci.classCode, start = code.substr(0, 6);
  if (isGpu(start, pci.vendor)) return DeviceKind::kGpu;
  if (start == "0x0604") return DeviceKind::kPci;
  if (start == "0x0680" && pci.vendor == kNvidia) return DeviceKind::kNvSwitch;
  if (start.starts_with("0x02")) return DeviceKind::kNic;
  return std::nullopt;
}

}  // namespace tutti::topology
