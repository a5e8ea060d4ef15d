#include "catalog/known_systems.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/plain_text.h"
#include "catalog/known_clouds.h"
#include "catalog/known_servers.h"

namespace tutti::topology {
namespace {

constexpr size_t kLongestAsked = 64;

constexpr KnownSystem kKnown[] = {
    {"dgx-a100", "NVIDIA DGX A100: 8 A100, 8 InfiniBand 200 Gb/s, 8 memory nodes", makeDgxA100},
    {"hgx-h100", "server with NVIDIA HGX H100: 8 H100, 8 InfiniBand 400 Gb/s, 2 memory nodes", makeHgxH100},
    {"azure-ndv2", "Azure ND40rs v2: 8 V100, 1 InfiniBand 100 Gb/s", makeAzureNdv2},
    {"azure-ndv4", "Azure ND96asr v4: 8 A100, 8 InfiniBand 200 Gb/s, 4 memory nodes", makeAzureNdv4},
    {"azure-ndv5", "Azure ND96isr H100 v5: 8 H100, 8 InfiniBand 400 Gb/s", makeAzureNdv5},
    {"azure-hbv3", "Azure HB120rs v3: no GPU, 1 InfiniBand 200 Gb/s", makeAzureHbv3},
    {"azure-hc", "Azure HC44rs: no GPU, 1 InfiniBand 100 Gb/s", makeAzureHc},
    {"aws-p4d", "AWS p4d.24xlarge: 8 A100, 4 EFA 100 Gb/s", makeAwsP4d},
    {"aws-p5", "AWS p5.48xlarge: 8 H100, 32 EFA 100 Gb/s", makeAwsP5},
    {"ibm-hgx-h100", "IBM Cloud with HGX H100: 8 H100, 8 RoCE 200 Gb/s in the opposite order", makeIbmHgxH100},
    {"pcie-box", "8 GPUs without NVLink behind PCI switches in two layers, 2 NICs", makePcieBox},
    {"ethernet-host", "no GPU, 1 Ethernet 25 Gb/s", makeEthernetHost},
};

std::string allNames() {
  std::string names;
  for (const KnownSystem& one : kKnown) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return names;
}

}  // namespace

std::span<const KnownSystem> knownSystems() { return kKnown; }

System makeKnownSystem(std::string_view name) {
  for (const KnownSystem& one : kKnown) {
    if (one.name != name) continue;
    System system = one.make();
    connect(system);
    return system;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("no system is known as \"{}\": name one of {}", plainText(name, kLongestAsked), allNames()));
}

}  // namespace tutti::topology
