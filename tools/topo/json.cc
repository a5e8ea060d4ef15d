#include <nlohmann/json.hpp>

#include "base/plain_text.h"
#include "topo/show.h"
#include "topology/paths.h"
#include "topology/warnings.h"

namespace tutti::topo {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKinds[] = {"numa", "pci", "gpu", "nvswitch", "nic", "port"};
constexpr const char* kLinkKinds[] = {"internal", "pci", "nvlink", "c2c", "sockets", "network"};
constexpr size_t kLongestValue = 256;

Json portJson(const topology::Port& port) {
  Json json{{"number", port.number}, {"megabits", port.megabits}};
  if (!port.guid.empty()) json["guid"] = plainText(port.guid, kLongestValue);
  if (!port.layer.empty()) json["layer"] = port.layer;
  for (const topology::Gid& gid : port.gids)
    json["gids"].push_back({{"index", gid.index}, {"address", gid.address}, {"type", gid.type}});
  return json;
}

Json deviceJson(const topology::System& system, int device) {
  const topology::Device& one = system.devices[device];
  Json json{{"id", device}, {"kind", kKinds[static_cast<size_t>(one.kind)]}, {"name", nameOf(system, device)}};
  if (one.parent >= 0) json["parent"] = one.parent;
  if (one.pci) json["busid"] = plainText(one.pci->busId, kLongestValue);
  if (one.numa) json["numa"] = one.numa->number;
  if (one.gpu) json.update(Json{{"number", one.gpu->number}, {"sm", one.gpu->sm}});
  if (one.port) json.update(portJson(*one.port));
  return json;
}

Json linkJson(const topology::Link& link) {
  return {{"a", link.a},
          {"b", link.b},
          {"kind", kLinkKinds[static_cast<size_t>(link.kind)]},
          {"gigabytes_per_second", link.gigabytes},
          {"count", link.count}};
}

// Of each pair of GPUs and NICs, once.
Json pathsJson(const topology::System& system) {
  std::vector<int> ends = devicesOf(system, topology::DeviceKind::kGpu);
  const std::vector<int> nics = devicesOf(system, topology::DeviceKind::kNic);
  ends.insert(ends.end(), nics.begin(), nics.end());
  const topology::Paths paths(system);
  Json json = Json::array();
  for (size_t i = 0; i < ends.size(); ++i)
    for (size_t j = i + 1; j < ends.size(); ++j) {
      const topology::Path& path = paths.between(ends[i], ends[j]);
      json.push_back({{"a", ends[i]},
                      {"b", ends[j]},
                      {"type", nameOf(path.type)},
                      {"gigabytes_per_second", path.gigabytes},
                      {"hops", path.hops}});
    }
  return json;
}

}  // namespace

std::string showJson(const topology::System& system) {
  Json json{{"devices", Json::array()}, {"links", Json::array()}, {"paths", pathsJson(system)}};
  for (size_t i = 0; i < system.devices.size(); ++i) json["devices"].push_back(deviceJson(system, static_cast<int>(i)));
  for (const topology::Link& link : system.links) json["links"].push_back(linkJson(link));
  json["remarks"] = system.remarks;
  json["warnings"] = warningsOf(system);
  return json.dump(2) + "\n";
}

}  // namespace tutti::topo
