#include "catalog/known_clouds.h"

#include <fmt/format.h>

#include "catalog/system_builder.h"

namespace tutti::topology {
namespace {

constexpr PciLink kAzureGen4{"16 GT/s", 16}, kAzureGen5{"32.0 GT/s PCIe", 16}, kAwsGen3{"8.0 GT/s PCIe", 16};
constexpr const char* kInfiniBand = "0x020700";
constexpr const char* kEthernet = "0x020000";
constexpr const char* kMellanox = "0x15b3";
constexpr const char* kAmazon = "0x1d0f";

// Azure numbers the domains, and has one device in each.
std::string domain(int number) { return fmt::format("{:04x}:00:00.0", number); }

// Switches that are in no guest: they stand for who is near whom.
std::string virtualSwitch(int number) { return fmt::format("ffff:ff:{:02x}.0", number); }

void cloudNvSwitches(SystemBuilder& build, const std::vector<int>& counts) {
  std::vector<std::pair<std::string, int>> switches;
  for (size_t i = 0; i < counts.size(); ++i) switches.emplace_back(fmt::format("fffe:00:{:02x}.0", i + 1), counts[i]);
  build.nvswitches(switches);
  build.remark("NVSwitches and their bus ids are assumed: the maker's file has no NVLinks");
}

// As a DGX-1 has them: each of eight GPUs with six, to four others.
void cubeMesh(SystemBuilder& build, const std::vector<int>& gpus) {
  struct Edge {
    int a, b, count;
  };
  constexpr Edge kEdges[] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
                             {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& [a, b, count] : kEdges) {
    build.nvlinks(gpus[a], build.busIdOf(gpus[b]), count, "0x030200");
    build.nvlinks(gpus[b], build.busIdOf(gpus[a]), count, "0x030200");
  }
}

// No GPUs, and one port of InfiniBand.
System azureCpuHost(int nodes, int cores, const CpuModel& cpu, const PortModel& port, const char* name) {
  SystemBuilder build;
  for (int node = 0; node < nodes; ++node) {
    const int numa = build.numa(node, cpu, affinityMask(node * cores, cores, nodes * cores));
    if (node == 0) build.nic(numa, domain(0x101), name, 0, port);
  }
  build.remark("the maker publishes no file: at which memory node the NIC is, and its PCI link, are assumed");
  return build.take();
}

}  // namespace

System makeAzureNdv2() {
  constexpr GpuModel kV100{"0x1db1", 70, kAzureGen4};
  constexpr PortModel kEdr{kInfiniBand, kMellanox, "0x1016", kAzureGen4, 100'000};
  SystemBuilder build;
  std::vector<int> gpus;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSkylake, affinityMask(node * 20, 20, 40));
    for (int i = 4 * node; i < 4 * node + 4; ++i) gpus.push_back(build.gpu(numa, domain(i + 1), i, kV100));
    if (node == 0) build.nic(numa, domain(0x101), "mlx5_0", 0, kEdr);
  }
  cubeMesh(build, gpus);
  build.remark("the NVLinks are those of a DGX-1 in the order of bus ids; in the guest that order may be another");
  return build.take();
}

// GPUs are numbered by their bus ids, memory nodes are not in that order: node 0 has the third and the fourth GPU.
System makeAzureNdv4() {
  struct Node {
    int gpus[2], nics[2];
  };
  constexpr Node kNodes[] = {
      {{0x03, 0x04}, {3, 4}}, {{0x01, 0x02}, {1, 2}}, {{0x0d, 0x0e}, {7, 8}}, {{0x0b, 0x0c}, {5, 6}}};
  constexpr int kFirstOfUpperHalf = 0x0b;
  constexpr GpuModel kA100{"0x20b0", 80, kAzureGen4};
  constexpr PortModel kHdr{kInfiniBand, kMellanox, "0x101c", kAzureGen4, 200'000};
  SystemBuilder build;
  for (int node = 0; node < 4; ++node) {
    const int numa = build.numa(node, kRome, affinityMask(node * 24, 24, 96));
    const int bridge = build.bridge(numa, virtualSwitch(node + 1), kAzureGen4);
    for (const int gpu : kNodes[node].gpus)
      build.gpu(bridge, domain(gpu), gpu < kFirstOfUpperHalf ? gpu - 1 : gpu - kFirstOfUpperHalf + 4, kA100);
    for (const int nic : kNodes[node].nics)
      build.nic(bridge, domain(0x100 + nic), fmt::format("mlx5_ib{}", nic - 1), nic - 1, kHdr);
  }
  cloudNvSwitches(build, {2, 2, 2, 2, 2, 2});
  return build.take();
}

System makeAzureNdv5() {
  constexpr int kGpus[] = {0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x0b, 0x0c};
  constexpr GpuModel kH100{"0x2330", 90, kAzureGen5};
  constexpr PortModel kNdr{kInfiniBand, kMellanox, "0x101e", kAzureGen5, 400'000};
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSapphireRapids, affinityMask(node * 48, 48, 96));
    for (int i = 4 * node; i < 4 * node + 4; ++i) {
      const int bridge = build.bridge(numa, virtualSwitch(i + 1), kAzureGen5);
      build.gpu(bridge, domain(kGpus[i]), i, kH100);
      build.nic(bridge, domain(0x101 + i), fmt::format("mlx5_ib{}", i), i, kNdr);
    }
  }
  cloudNvSwitches(build, {4, 5, 5, 4});
  return build.take();
}

System makeAzureHbv3() {
  return azureCpuHost(4, 30, kMilan, {kInfiniBand, kMellanox, "0x101c", kAzureGen4, 200'000}, "mlx5_ib0");
}

System makeAzureHc() {
  return azureCpuHost(2, 22, kSkylake, {kInfiniBand, kMellanox, "0x1018", {"8 GT/s", 16}, 100'000}, "mlx5_ib0");
}

// Of one bus, each quarter of the machine has two GPUs and an EFA.
System makeAwsP4d() {
  constexpr const char* kBuses[] = {"10", "20", "90", "a0"};
  constexpr const char* kNames[] = {"rdmap16s27", "rdmap32s27", "rdmap144s27", "rdmap160s27"};
  constexpr GpuModel kA100{"0x20b0", 80, kAwsGen3};
  constexpr PortModel kEfa{kEthernet, kAmazon, "0xefa1", kAwsGen3, 100'000};
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSkylake, affinityMask(node * 24, 24, 48));
    for (int i = 2 * node; i < 2 * node + 2; ++i) {
      const int bridge = build.bridge(numa, virtualSwitch(i + 1), kAwsGen3);
      for (int k = 0; k < 2; ++k)
        build.gpu(bridge, fmt::format("0000:{}:{}.0", kBuses[i], k == 0 ? "1c" : "1d"), 2 * i + k, kA100);
      build.nic(bridge, fmt::format("0000:{}:1b.0", kBuses[i]), kNames[i], i, kEfa);
    }
  }
  cloudNvSwitches(build, {2, 2, 2, 2, 2, 2});
  return build.take();
}

// Four EFAs for each GPU, on the buses before its own.
System makeAwsP5() {
  constexpr int kGpus[] = {0x53, 0x64, 0x75, 0x86, 0x97, 0xa8, 0xb9, 0xca};
  constexpr int kFirstEfas[] = {0x4f, 0x60, 0x71, 0x82, 0x93, 0xa4, 0xb5, 0xc6};
  constexpr GpuModel kH100{"0x2330", 90, kAzureGen5};
  constexpr PortModel kEfa{kEthernet, kAmazon, "0xefa2", {"16.0 GT/s PCIe", 8}, 100'000};
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kMilan, affinityMask(node * 48, 48, 96));
    for (int i = 4 * node; i < 4 * node + 4; ++i) {
      const int bridge = build.bridge(numa, virtualSwitch(i + 1), kAzureGen5);
      build.gpu(bridge, fmt::format("0000:{:02x}:00.0", kGpus[i]), i, kH100);
      for (int k = 0; k < 4; ++k) {
        const int bus = kFirstEfas[i] + k;
        build.nic(bridge, fmt::format("0000:{:02x}:00.0", bus), fmt::format("rdmap{}s0", bus), 4 * i + k, kEfa);
      }
    }
  }
  cloudNvSwitches(build, {4, 5, 5, 4});
  build.remark("the speeds of PCI links are assumed");
  return build.take();
}

// A bridge for each GPU and its NIC. GPUs count upwards by bus id, NICs downwards.
System makeIbmHgxH100() {
  struct Slot {
    const char *bridge, *nic, *gpu;
  };
  constexpr Slot kSlots[] = {{"a1", "a3", "a4"}, {"ab", "ad", "ae"}, {"b5", "b7", "b8"}, {"bf", "c1", "c2"},
                             {"c9", "cb", "cc"}, {"d3", "d5", "d6"}, {"dd", "df", "e0"}, {"e7", "e9", "ea"}};
  constexpr GpuModel kH100{"0x2330", 90, {"32.0 GT/s PCIe", 0}};
  constexpr PortModel kRoce{kEthernet, kMellanox, "0x101e", {"32.0 GT/s PCIe", 0}, 200'000};
  constexpr PciLink kSaid{"2.5 GT/s PCIe", 1};
  const auto busId = [](const char* bus) { return fmt::format("0000:{}:00.0", bus); };
  SystemBuilder build;
  for (int node = 0; node < 2; ++node) {
    const int numa = build.numa(node, kSapphireRapids, "");
    for (int i = 4 * node; i < 4 * node + 4; ++i) {
      const int bridge = build.bridge(numa, busId(kSlots[i].bridge), kSaid, "0x104c", "0x8232");
      build.nic(bridge, busId(kSlots[i].nic), fmt::format("mlx5_{}", 7 - i), 7 - i, kRoce);
      build.gpu(bridge, busId(kSlots[i].gpu), i, kH100);
    }
  }
  build.nvswitches({{busId("f3"), 4}, {busId("f4"), 5}, {busId("f5"), 5}, {busId("f6"), 4}});
  return build.take();
}

}  // namespace tutti::topology
