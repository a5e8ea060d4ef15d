#include "catalog/known_servers.h"

#include <fmt/format.h>

#include "catalog/system_builder.h"

namespace tutti::topology {
namespace {

constexpr PciLink kGen4{"16.0 GT/s PCIe", 16}, kGen5{"32.0 GT/s PCIe", 16};

std::string at(const char* bus) { return fmt::format("0000:{}:00.0", bus); }

}  // namespace

// GPUs in pairs, each pair at a switch with two NICs; these at every second memory node, the upper half of a socket's
// first. Both layers of each switch count as one, as NCCL writes it.
System makeDgxA100() {
  struct Pair {
    int numa;
    const char *bridge, *gpus[2], *nics[2];
  };
  constexpr Pair kPairs[] = {{3, "01", {"07", "0f"}, {"0c", "12"}},
                             {1, "41", {"47", "4e"}, {"4b", "54"}},
                             {7, "81", {"87", "90"}, {"8d", "94"}},
                             {5, "b1", {"b7", "bd"}, {"ba", "cc"}}};
  constexpr GpuModel kA100{"0x20b0", 80, kGen4};
  constexpr PortModel kHdr{"0x020700", "0x15b3", "0x101b", kGen4, 200'000};
  constexpr int kNodes = 8, kCores = 16;
  SystemBuilder build;
  for (int node = 0; node < kNodes; ++node) {
    const int numa = build.numa(node, kRome, affinityMask(node * kCores, kCores, kNodes * kCores));
    for (int i = 0; i < 4; ++i) {
      const Pair& pair = kPairs[i];
      if (pair.numa != node) continue;
      const int bridge = build.bridge(numa, at(pair.bridge), kGen4);
      for (int k = 0; k < 2; ++k) build.gpu(bridge, at(pair.gpus[k]), 2 * i + k, kA100);
      for (int k = 0; k < 2; ++k)
        build.nic(bridge, at(pair.nics[k]), fmt::format("mlx5_{}", 2 * i + k), 2 * i + k, kHdr);
    }
  }
  build.nvswitches({{at("c4"), 2}, {at("c5"), 2}, {at("c6"), 2}, {at("c7"), 2}, {at("c8"), 2}, {at("c9"), 2}});
  build.remark("bus ids of switches, and the processing units of hyper-threads, are assumed or left out");
  return build.take();
}

// A switch for each GPU and its NIC.
System makeHgxH100() {
  struct Slot {
    const char *bridge, *gpu, *nic;
  };
  constexpr Slot kSlots[] = {{"15", "1b", "18"}, {"3d", "43", "40"}, {"4c", "52", "4f"}, {"5b", "61", "5e"},
                             {"97", "9d", "9a"}, {"bd", "c3", "c0"}, {"cb", "d1", "ce"}, {"d9", "df", "dc"}};
  constexpr GpuModel kH100{"0x2330", 90, kGen5};
  constexpr PortModel kNdr{"0x020700", "0x15b3", "0x1021", kGen5, 400'000};
  constexpr int kCores = 56;
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSapphireRapids, affinityMask(node * kCores, kCores, 2 * kCores));
    for (int i = 4 * node; i < 4 * node + 4; ++i) {
      const int bridge = build.bridge(numa, at(kSlots[i].bridge), kGen5, "0x1000", "0xc030");
      build.gpu(bridge, at(kSlots[i].gpu), i, kH100);
      build.nic(bridge, at(kSlots[i].nic), fmt::format("mlx5_{}", i), i, kNdr);
    }
  }
  build.nvswitches({{at("05"), 4}, {at("06"), 5}, {at("07"), 5}, {at("08"), 4}});
  build.remark("bus ids and cores differ from maker to maker; these are one's");
  return build.take();
}

// Each memory node has a switch above two more, each of these with two GPUs; a NIC is at the second.
System makePcieBox() {
  constexpr GpuModel kA40{"0x2235", 86, kGen4};
  constexpr PortModel kRoce{"0x020000", "0x15b3", "0x101d", kGen4, 100'000};
  constexpr int kCores = 28;
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSapphireRapids, affinityMask(node * kCores, kCores, 2 * kCores));
    const int base = node == 0 ? 0x10 : 0x90;
    const auto busId = [&](int offset) { return fmt::format("0000:{:02x}:00.0", base + offset); };
    const int top = build.bridge(numa, busId(0), kGen4);
    for (int half = 0; half < 2; ++half) {
      const int bridge = build.bridge(top, busId(1 + 8 * half), kGen4);
      for (int k = 0; k < 2; ++k) build.gpu(bridge, busId(2 + 8 * half + k), 4 * node + 2 * half + k, kA40);
      if (half == 1) build.nic(bridge, busId(4 + 8 * half), fmt::format("mlx5_{}", node), node, kRoce);
    }
  }
  build.remark("this is no maker's machine: it shows what GPUs without NVLink behind two layers of switches are like");
  return build.take();
}

System makeEthernetHost() {
  constexpr PortModel k25{"0x020000", "0x8086", "0x159b", {"16.0 GT/s PCIe", 8}, 25'000};
  constexpr int kCores = 16;
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSapphireRapids, affinityMask(node * kCores, kCores, 2 * kCores));
    if (node == 0) build.nic(numa, at("31"), "eth0", 0, k25);
  }
  build.remark("this is no maker's machine: it shows what a host with Ethernet alone is like");
  return build.take();
}

}  // namespace tutti::topology
