// The ports of RDMA devices here, and which of them a link uses.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::verbs {

struct GidEntry {
  int index = 0;
  std::array<uint8_t, 16> gid{};
  bool isRoceV2 = false;
};

struct Port {
  std::string device;
  int number = 0;
  bool isActive = false;
  bool isEthernet = false;
  std::string state;  // "PORT_DOWN"
  double gigabits = 0;
  int numaNode = -1;
  uint16_t lid = 0;
  uint8_t mtu = 0;
  std::vector<GidEntry> gids;

  std::string name() const { return device + ":" + std::to_string(number); }
};

// Whether a list of ports (base/port_list.h) means this one.
bool isMeant(std::string_view list, const Port& port);

// The address of a port that the other end can be told: with `wanted` at least 0 the one of that index, else, of RoCE,
// that of version 2 with an IPv4 address, then with a routable IPv6 one, then with any; of InfiniBand the first. Null
// where there is none.
const GidEntry* chosenGid(const Port& port, int wanted);

// The ports of a link: of the active ones that are meant those near the rank's memory node, if any are, and of these
// the fastest; by name, but beginning at another one for each `turn`, so that links share them. At most `most`.
std::vector<const Port*> portsOf(const std::vector<Port>& ports, std::string_view list, int numaNode, unsigned turn,
                                 size_t most);

// Why those ports of a link should not move what lies in a GPU near that memory node; empty: they may. Both near, or
// nothing known: across two nodes' join (PCIe reads and writes through two processors) the way over the host's memory
// is the faster one.
std::string whyNotOnGpu(const std::vector<const Port*>& chosen, int numaNode);

// Why there is none that could be used, for people.
std::string whyNone(const std::vector<Port>& ports, std::string_view list);

}  // namespace tutti::verbs
