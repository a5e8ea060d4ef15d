#include "transports/verbs/ports.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/port_list.h"

namespace tutti::verbs {
namespace {

// Of addresses as RoCE's version 2 has them: the lower, the better.
int rankOf(const GidEntry& entry) {
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const bool isIpv4 = std::equal(kMapped.begin(), kMapped.end(), entry.gid.begin());
  const bool isLinkLocal = entry.gid[0] == 0xfe && (entry.gid[1] & 0xc0) == 0x80;
  return (entry.isRoceV2 ? 0 : 4) + (isIpv4 ? 0 : isLinkLocal ? 2 : 1);
}

}  // namespace

bool isMeant(std::string_view list, const Port& port) { return meansPort(list, port.device, port.number); }

const GidEntry* chosenGid(const Port& port, int wanted) {
  if (port.gids.empty()) return nullptr;
  if (wanted >= 0) {
    const auto found = std::ranges::find(port.gids, wanted, &GidEntry::index);
    return found == port.gids.end() ? nullptr : &*found;
  }
  if (!port.isEthernet) return &port.gids.front();
  return &*std::ranges::min_element(port.gids, {}, rankOf);
}

std::vector<const Port*> portsOf(const std::vector<Port>& ports, std::string_view list, int numaNode, unsigned turn,
                                 size_t most) {
  std::vector<const Port*> usable;
  for (const Port& port : ports)
    if (port.isActive && isMeant(list, port)) usable.push_back(&port);
  const auto isFar = [&](const Port* port) {
    return numaNode >= 0 && port->numaNode >= 0 && port->numaNode != numaNode;
  };
  const auto order = [&](const Port* port) {
    return std::make_tuple(isFar(port), -port->gigabits, port->device, port->number);
  };
  std::ranges::sort(usable, {}, order);
  // Equals alone: parts of a slot are of one length, and the slowest would hold up the others.
  const auto equals = std::ranges::find_if(usable, [&](const Port* port) {
    return isFar(port) != isFar(usable.front()) || port->gigabits != usable.front()->gigabits;
  });
  usable.erase(equals, usable.end());
  if (!usable.empty()) std::ranges::rotate(usable, usable.begin() + turn % static_cast<unsigned>(usable.size()));
  if (usable.size() > most) usable.resize(most);
  return usable;
}

std::string whyNotOnGpu(const std::vector<const Port*>& chosen, int numaNode) {
  for (const Port* port : chosen)
    if (numaNode >= 0 && port->numaNode >= 0 && port->numaNode != numaNode)
      return fmt::format("the GPU is near memory node {}, and {}, the nearest port, near node {}", numaNode,
                         port->name(), port->numaNode);
  return {};
}

std::string whyNone(const std::vector<Port>& ports, std::string_view list) {
  if (ports.empty()) return "there is no RDMA device here";
  std::string all;
  for (const Port& port : ports) {
    const std::string why = !isMeant(list, port) ? fmt::format("left out by TUTTI_IB_HCA={}", list) : port.state;
    all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", port.name(), why);
  }
  return "no RDMA port that may be used is active: " + all;
}

}  // namespace tutti::verbs
