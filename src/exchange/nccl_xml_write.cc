// From a system to NCCL's XML.
#include <fmt/format.h>

#include <pugixml.hpp>
#include <sstream>

#include "exchange/nccl_xml.h"

namespace tutti::topology {
namespace {

void set(pugi::xml_node& node, const char* name, const std::string& value) {
  if (!value.empty()) node.append_attribute(name) = value.c_str();
}

void set(pugi::xml_node& node, const char* name, const std::optional<bool>& value) {
  if (value) node.append_attribute(name) = *value ? 1 : 0;
}

void setUnless(pugi::xml_node& node, const char* name, long long value, long long unknown) {
  if (value != unknown) node.append_attribute(name) = value;
}

void append(pugi::xml_node& node, const Extras& extras) {
  for (const auto& [name, value] : extras.attributes) node.append_attribute(name.c_str()) = value.c_str();
  for (const std::string& element : extras.elements) node.append_buffer(element.data(), element.size());
}

pugi::xml_node writeNuma(pugi::xml_node above, const Numa& numa) {
  pugi::xml_node node = above.append_child("cpu");
  node.append_attribute("numaid") = numa.number;
  set(node, "affinity", numa.affinity);
  set(node, "arch", numa.arch);
  set(node, "vendor", numa.vendor);
  setUnless(node, "familyid", numa.family, 0);
  setUnless(node, "modelid", numa.model, 0);
  set(node, "host_hash", numa.host);
  append(node, numa.extras);
  return node;
}

pugi::xml_node writePci(pugi::xml_node above, const Pci& pci) {
  pugi::xml_node node = above.append_child("pci");
  set(node, "busid", pci.busId);
  set(node, "class", pci.classCode);
  set(node, "vendor", pci.vendor);
  set(node, "device", pci.device);
  set(node, "subsystem_vendor", pci.subsystemVendor);
  set(node, "subsystem_device", pci.subsystemDevice);
  node.append_attribute("link_speed") = pci.speed.c_str();
  node.append_attribute("link_width") = pci.width;
  append(node, pci.extras);
  for (const PciPeer& peer : pci.peers) {
    pugi::xml_node link = node.append_child("pcilink");
    link.append_attribute("target") = peer.target.c_str();
    append(link, peer.extras);
  }
  return node;
}

void writeGpu(pugi::xml_node above, const Gpu& gpu) {
  pugi::xml_node node = above.append_child("gpu");
  setUnless(node, "dev", gpu.number, -1);
  setUnless(node, "sm", gpu.sm, 0);
  if (gpu.rank) node.append_attribute("rank") = *gpu.rank;
  set(node, "gdr", gpu.direct);
  append(node, gpu.extras);
  for (const NvLinks& row : gpu.nvlinks) {
    pugi::xml_node link = node.append_child("nvlink");
    link.append_attribute("target") = row.target.c_str();
    link.append_attribute("count") = row.count;
    set(link, "tclass", row.targetClass);
    append(link, row.extras);
  }
  for (const C2c& row : gpu.c2c) {
    pugi::xml_node link = node.append_child("c2c");
    link.append_attribute("bw") = row.megabytesPerSecond;
    link.append_attribute("count") = row.count;
    append(link, row.extras);
  }
}

pugi::xml_node writeNic(pugi::xml_node above, const Nic& nic) {
  pugi::xml_node node = above.append_child("nic");
  append(node, nic.extras);
  return node;
}

void writePort(pugi::xml_node above, const Port& port) {
  pugi::xml_node node = above.append_child("net");
  set(node, "name", port.name);
  setUnless(node, "dev", port.number, -1);
  setUnless(node, "speed", port.megabits, 0);
  setUnless(node, "port", port.ofNic, -1);
  set(node, "guid", port.guid);
  set(node, "gdr", port.direct);
  append(node, port.extras);
}

// A port's element is in the <nic>, which itself is in the <pci>, if there is one.
pugi::xml_node nicOf(pugi::xml_node node) { return node.name() == std::string_view("nic") ? node : node.child("nic"); }

// The element that what is below the device goes into.
pugi::xml_node writeDevice(pugi::xml_node above, const Device& device) {
  if (device.numa) return writeNuma(above, *device.numa);
  if (device.port) {
    writePort(nicOf(above), *device.port);
    return above;
  }
  if (!device.pci) return writeNic(above, device.nic.value_or(Nic{}));
  const pugi::xml_node node = writePci(above, *device.pci);
  if (device.gpu) writeGpu(node, *device.gpu);
  if (device.nic) writeNic(node, *device.nic);
  return node;
}

}  // namespace

std::string writeNcclXml(const System& system) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("system");
  set(root, "version", system.version);
  append(root, system.extras);
  std::vector<pugi::xml_node> elements;
  for (const Device& device : system.devices) {
    const bool beside = device.parent < 0 && !device.numa;  // NVSwitches that NVLinks tell of
    const pugi::xml_node above = device.parent < 0 ? root : elements[static_cast<size_t>(device.parent)];
    elements.push_back(beside ? root : writeDevice(above, device));
  }
  std::ostringstream text;
  document.save(text, "  ", pugi::format_default | pugi::format_no_declaration, pugi::encoding_utf8);
  return text.str();
}

}  // namespace tutti::topology
