#include "exchange/nccl_xml_read.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/error.h"
#include "base/plain_text.h"
#include "exchange/hwloc_sets.h"
#include "exchange/xml_attributes.h"

namespace tutti::topology {
namespace {

constexpr Bounds kFlag{0, 1}, kCount{0, 1 << 16}, kSmall{0, 1 << 20}, kNumber{-1, 1 << 20}, kMegabits{0, 100'000'000};

class Reading {
 public:
  System run(const pugi::xml_node& root);

 private:
  int add(DeviceKind kind, int parent);
  void remark(std::string text) { system_.remarks.push_back(std::move(text)); }
  void keep(const pugi::xml_node& element, Extras& extras);
  void finish(const XmlAttributes& attributes, Extras& extras) { extras.attributes = attributes.rest(); }
  // The same of an element in which none are expected.
  void finish(const XmlAttributes& attributes, const pugi::xml_node& element, Extras& extras);
  std::string affinityOfElement(const pugi::xml_node& element, std::string text);
  Numa numaOfElement(const pugi::xml_node& element);
  void numa(const pugi::xml_node& element);
  DeviceKind kindOf(const pugi::xml_node& element, const Pci& pci);
  Pci pciOfElement(const pugi::xml_node& element);
  void pci(const pugi::xml_node& element, int parent);
  void pciChild(const pugi::xml_node& child, int device);
  void gpu(const pugi::xml_node& element, int device);
  void nvlink(const pugi::xml_node& element, Gpu& gpu);
  void c2c(const pugi::xml_node& element, Gpu& gpu);
  void nic(const pugi::xml_node& element, int device);
  void port(const pugi::xml_node& element, int parent);

  System system_;
  std::set<std::pair<std::string, int>> nodes_;  // host and number
};

int Reading::add(DeviceKind kind, int parent) {
  if (system_.devices.size() >= kMostDevices)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("it has more than {} devices", kMostDevices));
  system_.devices.emplace_back();
  system_.devices.back().kind = kind;
  system_.devices.back().parent = parent;
  return static_cast<int>(system_.devices.size()) - 1;
}

// An element that is unknown where it stands. Comments and text between elements are no part of a description.
void Reading::keep(const pugi::xml_node& element, Extras& extras) {
  if (element.type() != pugi::node_element) return;
  remark(fmt::format("{} in {} is kept, but not understood", describe(element), describe(element.parent())));
  extras.elements.push_back(textOf(element));
}

void Reading::finish(const XmlAttributes& attributes, const pugi::xml_node& element, Extras& extras) {
  finish(attributes, extras);
  for (const pugi::xml_node& child : element.children()) keep(child, extras);
}

// Kept as it is written; what is no set would be read for cores that nobody has.
std::string Reading::affinityOfElement(const pugi::xml_node& element, std::string text) {
  if (text.empty() || parseAffinity(text)) return text;
  remark(fmt::format("{}: affinity=\"{}\" is no set of cores, as 0000ffff,ffffffff is; it is left out",
                     describe(element), plainText(text, kLongestShown)));
  return {};
}

Numa Reading::numaOfElement(const pugi::xml_node& element) {
  XmlAttributes said(element);
  Numa numa;
  numa.number = static_cast<int>(said.number("numaid", kNumber).value_or(-1));
  numa.affinity = affinityOfElement(element, said.text("affinity").value_or(""));
  numa.arch = said.text("arch").value_or("");
  numa.vendor = said.text("vendor").value_or("");
  numa.family = static_cast<int>(said.number("familyid", kSmall).value_or(0));
  numa.model = static_cast<int>(said.number("modelid", kSmall).value_or(0));
  numa.host = said.text("host_hash").value_or("");
  finish(said, numa.extras);
  return numa;
}

void Reading::numa(const pugi::xml_node& element) {
  const int device = add(DeviceKind::kNuma, -1);
  Numa numa = numaOfElement(element);
  if (!nodes_.emplace(numa.host, numa.number).second)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: the memory node {} is there twice: give each its own numaid", describe(element), numa.number));
  if (numa.number < 0) remark("a memory node has no number (numaid): whose memory is near what is unknown");
  for (const pugi::xml_node& child : element.children()) {
    const std::string_view name = child.name();
    if (name == "pci")
      pci(child, device);
    else if (name == "nic")
      nic(child, add(DeviceKind::kNic, device));
    else
      keep(child, numa.extras);
  }
  system_.devices[device].numa = std::move(numa);
}

Pci Reading::pciOfElement(const pugi::xml_node& element) {
  XmlAttributes said(element);
  Pci pci;
  pci.busId = said.text("busid").value_or("");
  pci.classCode = said.text("class").value_or("");
  pci.vendor = said.text("vendor").value_or("");
  pci.device = said.text("device").value_or("");
  pci.subsystemVendor = said.text("subsystem_vendor").value_or("");
  pci.subsystemDevice = said.text("subsystem_device").value_or("");
  pci.speed = said.text("link_speed").value_or("");
  pci.width = static_cast<int>(said.number("link_width", {0, 64}).value_or(0));
  finish(said, pci.extras);
  return pci;
}

DeviceKind Reading::kindOf(const pugi::xml_node& element, const Pci& pci) {
  const bool gpu = element.child("gpu"), nic = element.child("nic");
  if (gpu && nic)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is both a GPU and a NIC: give each a <pci> of its own", describe(element)));
  if (gpu || nic) return gpu ? DeviceKind::kGpu : DeviceKind::kNic;
  return kindOfClass(pci.classCode);
}

void Reading::pci(const pugi::xml_node& element, int parent) {
  Pci pci = pciOfElement(element);
  const int device = add(kindOf(element, pci), parent);
  system_.devices[device].pci = std::move(pci);
  for (const pugi::xml_node& child : element.children()) pciChild(child, device);
}

void Reading::pciChild(const pugi::xml_node& child, int device) {
  const std::string_view name = child.name();
  if (name == "pci") return pci(child, device);
  if (name == "gpu") return gpu(child, device);
  if (name == "nic") return nic(child, device);
  Pci& own = *system_.devices[device].pci;
  if (name != "pcilink") return keep(child, own.extras);
  XmlAttributes said(child);
  PciPeer& peer = own.peers.emplace_back();
  peer.target = said.text("target").value_or("");
  finish(said, child, peer.extras);
}

void Reading::gpu(const pugi::xml_node& element, int device) {
  if (system_.devices[device].gpu)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has two <gpu>: it can be one", describe(element.parent())));
  XmlAttributes said(element);
  Gpu& gpu = system_.devices[device].gpu.emplace();
  gpu.number = static_cast<int>(said.number("dev", kNumber).value_or(-1));
  gpu.sm = static_cast<int>(said.number("sm", {0, 1000}).value_or(0));
  if (const auto rank = said.number("rank", kNumber)) gpu.rank = static_cast<int>(*rank);
  if (const auto direct = said.number("gdr", kFlag)) gpu.direct = *direct != 0;
  finish(said, gpu.extras);
  for (const pugi::xml_node& child : element.children()) {
    const std::string_view name = child.name();
    if (name == "nvlink")
      nvlink(child, gpu);
    else if (name == "c2c")
      c2c(child, gpu);
    else
      keep(child, gpu.extras);
  }
}

void Reading::nvlink(const pugi::xml_node& element, Gpu& gpu) {
  XmlAttributes said(element);
  NvLinks& row = gpu.nvlinks.emplace_back();
  row.target = said.text("target").value_or("");
  row.count = static_cast<int>(said.number("count", kCount).value_or(0));
  row.targetClass = said.text("tclass").value_or("");
  finish(said, element, row.extras);
  if (row.count == 0) remark(fmt::format("{}: no count; it stands for no link", describe(element)));
}

void Reading::c2c(const pugi::xml_node& element, Gpu& gpu) {
  XmlAttributes said(element);
  C2c& row = gpu.c2c.emplace_back();
  row.megabytesPerSecond = static_cast<int>(said.number("bw", {0, 100'000'000}).value_or(0));
  row.count = static_cast<int>(said.number("count", kCount).value_or(0));
  finish(said, element, row.extras);
}

void Reading::nic(const pugi::xml_node& element, int device) {
  if (system_.devices[device].nic)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has two <nic>: it can be one", describe(element.parent())));
  XmlAttributes said(element);
  Nic nic;
  finish(said, nic.extras);
  system_.devices[device].nic.emplace();
  for (const pugi::xml_node& child : element.children()) {
    if (child.name() == std::string_view("net"))
      port(child, device);
    else
      keep(child, nic.extras);
  }
  system_.devices[device].nic = std::move(nic);
}

void Reading::port(const pugi::xml_node& element, int parent) {
  XmlAttributes said(element);
  Port port;
  port.name = said.text("name").value_or("");
  port.number = static_cast<int>(said.number("dev", kNumber).value_or(-1));
  port.megabits = said.number("speed", kMegabits).value_or(0);
  port.ofNic = static_cast<int>(said.number("port", kNumber).value_or(-1));
  port.guid = said.text("guid").value_or("");
  if (const auto direct = said.number("gdr", kFlag)) port.direct = *direct != 0;
  finish(said, element, port.extras);
  system_.devices[add(DeviceKind::kPort, parent)].port = std::move(port);
}

System Reading::run(const pugi::xml_node& root) {
  XmlAttributes said(root);
  system_.version = said.text("version").value_or("");
  if (system_.version != "1" && system_.version != "2")
    remark(fmt::format("the version \"{}\" of the format is unknown; it is read as version 1",
                       plainText(system_.version, kLongestShown)));
  finish(said, system_.extras);
  for (const pugi::xml_node& child : root.children()) {
    if (child.name() == std::string_view("cpu"))
      numa(child);
    else
      keep(child, system_.extras);
  }
  if (system_.devices.empty()) remark("it has no <cpu>: the system is empty");
  return std::move(system_);
}

}  // namespace

System devicesOfNcclXml(const pugi::xml_document& document) {
  const pugi::xml_node root = document.document_element();
  if (root.name() != std::string_view("system"))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("it begins with {}: a description of a system begins with <system>", describe(root)));
  return Reading().run(root);
}

}  // namespace tutti::topology
