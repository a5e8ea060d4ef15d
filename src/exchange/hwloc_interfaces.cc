#include "exchange/hwloc_interfaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/plain_text.h"
#include "exchange/xml_attributes.h"

namespace tutti::topology {
namespace {

constexpr std::string_view kActive = "4";
constexpr int kMostPorts = 8, kMostGpus = 1024;

std::string_view kindOf(const pugi::xml_node& element) { return element.attribute("osdev_type").value(); }

std::optional<std::string> infoOf(const pugi::xml_node& element, const std::string& name) {
  for (const pugi::xml_node& info : element.children("info"))
    if (info.attribute("name").value() == name) return info.attribute("value").value();
  return std::nullopt;
}

// "506b:4b03:00f3:a1c2" as NCCL writes it.
std::string guidOf(const pugi::xml_node& element) {
  std::string guid = infoOf(element, "NodeGUID").value_or("");
  guid.erase(std::remove(guid.begin(), guid.end(), ':'), guid.end());
  return guid.empty() ? guid : "0x" + guid;
}

std::vector<Port> rdmaPorts(const pugi::xml_node& element, std::vector<std::string>& remarks) {
  Port port;
  port.name = element.attribute("name").value();
  port.guid = guidOf(element);
  std::vector<Port> ports;
  bool told = false;
  for (port.ofNic = 1; port.ofNic <= kMostPorts; ++port.ofNic) {
    const auto state = infoOf(element, fmt::format("Port{}State", port.ofNic));
    if (!state) continue;
    told = true;
    if (state->starts_with(kActive))
      ports.push_back(port);
    else
      remarks.push_back(
          fmt::format("port {} of {} is not active: it is left out", port.ofNic, plainText(port.name, kLongestShown)));
  }
  port.ofNic = 1;
  if (!told) ports.push_back(port);
  return ports;
}

void collect(const pugi::xml_node& nic, std::string_view kind, std::vector<pugi::xml_node>& found) {
  for (const pugi::xml_node& child : nic.children("object")) {
    if (child.attribute("type").value() == std::string_view("OSDev") && kindOf(child) == kind) found.push_back(child);
    collect(child, kind, found);
  }
}

}  // namespace

bool isInterface(const pugi::xml_node& element) {
  return kindOf(element) == kNetworkInterface || kindOf(element) == kRdmaInterface;
}

std::vector<Port> portsOfInterface(const pugi::xml_node& element, std::vector<std::string>& remarks) {
  if (kindOf(element) == kRdmaInterface) return rdmaPorts(element, remarks);
  Port port;
  port.name = element.attribute("name").value();
  return {port};
}

std::vector<Port> portsOfHwloc(const pugi::xml_node& nic, std::vector<std::string>& remarks) {
  std::vector<pugi::xml_node> interfaces;
  collect(nic, kRdmaInterface, interfaces);
  if (interfaces.empty()) collect(nic, kNetworkInterface, interfaces);
  std::vector<Port> all;
  for (const pugi::xml_node& one : interfaces)
    for (Port& port : portsOfInterface(one, remarks)) all.push_back(std::move(port));
  return all;
}

void setPortOfHwloc(pugi::xml_node& element, const Port& port) {
  const auto info = [&](const std::string& name, const std::string& value) {
    pugi::xml_node added = element.append_child("info");
    added.append_attribute("name") = name.c_str();
    added.append_attribute("value") = value.c_str();
  };
  if (port.ofNic < 0) return;
  const std::string digits = port.guid.starts_with("0x") ? port.guid.substr(2) : "";
  if (digits.size() == 16 && !infoOf(element, "NodeGUID"))
    info("NodeGUID",
         fmt::format("{}:{}:{}:{}", digits.substr(0, 4), digits.substr(4, 4), digits.substr(8, 4), digits.substr(12)));
  info(fmt::format("Port{}State", port.ofNic), std::string(kActive));
}

int gpuNumberOfHwloc(const pugi::xml_node& gpu) {
  constexpr std::string_view kStart = "nvml";
  std::vector<pugi::xml_node> found;
  collect(gpu, kGpuInterface, found);
  for (const pugi::xml_node& one : found) {
    const std::string_view name = one.attribute("name").value();
    int number = -1;
    if (name.starts_with(kStart)) std::from_chars(name.data() + kStart.size(), name.data() + name.size(), number);
    if (number >= 0 && number < kMostGpus) return number;
  }
  return -1;
}

}  // namespace tutti::topology
