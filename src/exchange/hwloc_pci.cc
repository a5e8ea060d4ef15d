#include "exchange/hwloc_pci.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string_view>

#include "exchange/xml_attributes.h"
#include "topology/speeds.h"

namespace tutti::topology {
namespace {

// What a lane of each generation carries in GB/s, as hwloc counts it: without the bits that the encoding adds.
struct Lane {
  const char* speed;
  double gigabytes;
};
constexpr Lane kLanes[] = {{"64.0 GT/s PCIe", 64.0 / 8 * 242 / 256}, {"64.0 GT/s PCIe", 64.0 / 8 * 128 / 130},
                           {"32.0 GT/s PCIe", 32.0 / 8 * 128 / 130}, {"16.0 GT/s PCIe", 16.0 / 8 * 128 / 130},
                           {"8.0 GT/s PCIe", 8.0 / 8 * 128 / 130},   {"5.0 GT/s PCIe", 5.0 / 8 * 8 / 10},
                           {"2.5 GT/s PCIe", 2.5 / 8 * 8 / 10}};
constexpr std::string_view kUnknown = "0000";
constexpr int kWidths[] = {16, 8, 4, 2, 1};
constexpr double kTolerance = 0.005;

// hwloc tells one number where speed and width are two: of all that carry as much, the widest link is taken.
void setLink(Pci& pci, double gigabytes) {
  for (const int width : kWidths)
    for (const Lane& lane : kLanes) {
      const double carries = lane.gigabytes * width;
      if (!(std::abs(gigabytes - carries) < kTolerance * carries)) continue;
      pci.speed = lane.speed;
      pci.width = width;
      return;
    }
}

double numberOf(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "0302 [10de:20b0] [10de:134f] a1": class, vendor and device, those of the subsystem, revision.
void setType(Pci& pci, std::string_view text) {
  const auto part = [&](size_t from) {
    const std::string_view digits = text.substr(from, 4);
    return digits == kUnknown ? "" : "0x" + std::string(digits);
  };
  if (text.size() < 4) return;
  pci.classCode = "0x" + std::string(text.substr(0, 4)) + "00";
  if (text.size() < 16 || text[5] != '[' || text[10] != ':') return;
  pci.vendor = part(6);
  pci.device = part(11);
  if (text.size() < 28 || text[17] != '[' || text[22] != ':') return;
  pci.subsystemVendor = part(18);
  pci.subsystemDevice = part(23);
}

// Four of its digits, after the "0x".
std::string digitsOf(const std::string& code) { return code.size() >= 6 ? code.substr(2, 4) : std::string(kUnknown); }

double gigabytesOf(const Pci& pci) {
  const auto transfers = transfersOf(pci.speed);
  for (const Lane& lane : kLanes)
    if (transfers && transfers == transfersOf(lane.speed)) return lane.gigabytes * pci.width;
  return 0;
}

}  // namespace

void setPciOfHwloc(pugi::xml_node& element, const Pci& pci) {
  element.append_attribute("pci_busid") = pci.busId.c_str();
  element.append_attribute("pci_type") =
      fmt::format("{} [{}:{}] [{}:{}] 00", digitsOf(pci.classCode), digitsOf(pci.vendor), digitsOf(pci.device),
                  digitsOf(pci.subsystemVendor), digitsOf(pci.subsystemDevice))
          .c_str();
  element.append_attribute("pci_link_speed") = fmt::format("{:f}", gigabytesOf(pci)).c_str();
}

Pci pciOfHwloc(const pugi::xml_node& element) {
  XmlAttributes said(element);
  Pci pci;
  pci.busId = said.text("pci_busid").value_or("");
  setType(pci, said.text("pci_type").value_or(""));
  if (const auto speed = said.text("pci_link_speed")) setLink(pci, numberOf(*speed));
  return pci;
}

}  // namespace tutti::topology
