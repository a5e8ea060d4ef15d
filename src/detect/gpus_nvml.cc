// seenByNvml().
#include <fmt/format.h>

#include <map>

#include "detect/gpus.h"
#include "process/nvml.h"

namespace tutti::detect {
namespace {

using Handle = struct OpaqueGpu*;

// As NVML lays it out.
struct PciInfo {
  char legacyBusId[16];
  unsigned domain, bus, device;
  unsigned ids, subsystemIds;
  char busId[32];
};

// NVML's numbers: what is at the other end of a link, and whether the link is up.
enum Remote : int { kRemoteGpu = 0, kRemoteSwitch = 2, kRemoteUnknown = 255 };
constexpr int kUp = 1;
constexpr unsigned kMostLinks = 64, kMostGpus = 256;  // no GPU or host has so many
constexpr unsigned kHidden = 0xff;                    // bus and device of a fabric that a hypervisor hides

constexpr const char* kGpuClass = "0x030200";
constexpr const char* kSwitchClass = "0x068000";

// Where a GPU's links lead, by bus id.
struct Links {
  std::map<std::string, topology::NvLinks> rows;
  int down = 0, unclear = 0;
};

std::string busIdOf(const PciInfo& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

class Looking {
 public:
  Looking(const char* library, std::vector<std::string>& remarks);
  std::vector<SeenGpu> all() const;

 private:
  SeenGpu gpu(unsigned index) const;
  void addNvLinks(Handle handle, const SeenGpu& seen, topology::Gpu& gpu) const;
  bool look(Handle handle, unsigned link, Links& links) const;
  void remark(std::string text) const { remarks_.push_back(std::move(text)); }

  Nvml nvml_;
  std::vector<std::string>& remarks_;
  int (*count_)(unsigned* count) = nullptr;
  int (*byIndex_)(unsigned index, Handle* handle) = nullptr;
  int (*pci_)(Handle handle, PciInfo* pci) = nullptr;
  int (*capability_)(Handle handle, int* major, int* minor) = nullptr;
  int (*linkState_)(Handle handle, unsigned link, int* state) = nullptr;
  int (*remotePci_)(Handle handle, unsigned link, PciInfo* pci) = nullptr;
  int (*remoteKind_)(Handle handle, unsigned link, int* kind) = nullptr;
};

Looking::Looking(const char* library, std::vector<std::string>& remarks) : nvml_(library), remarks_(remarks) {
  nvml_.find(count_, "nvmlDeviceGetCount_v2");
  nvml_.find(byIndex_, "nvmlDeviceGetHandleByIndex_v2");
  nvml_.find(pci_, "nvmlDeviceGetPciInfo_v3");
  nvml_.find(capability_, "nvmlDeviceGetCudaComputeCapability");
  nvml_.find(linkState_, "nvmlDeviceGetNvLinkState");
  nvml_.find(remotePci_, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  nvml_.find(remoteKind_, "nvmlDeviceGetNvLinkRemoteDeviceType");
}

// Whether the GPU has that link at all.
bool Looking::look(Handle handle, unsigned link, Links& links) const {
  int state = 0, kind = kRemoteUnknown;
  if (linkState_(handle, link, &state) != Nvml::kSuccess) return false;
  if (state != kUp) return ++links.down, true;
  PciInfo remote{};
  if (remotePci_(handle, link, &remote) != Nvml::kSuccess) return ++links.unclear, true;
  const bool hidden = remote.bus == kHidden && remote.device == kHidden;
  if (remoteKind_(handle, link, &kind) != Nvml::kSuccess) kind = kRemoteUnknown;
  const std::string target = hidden ? "fffffff:ff:ff.0" : busIdOf(remote);
  topology::NvLinks& row = links.rows[target];
  row.target = target;
  row.targetClass = hidden || kind == kRemoteSwitch ? kSwitchClass : kind == kRemoteGpu ? kGpuClass : "";
  ++row.count;
  return true;
}

void Looking::addNvLinks(Handle handle, const SeenGpu& seen, topology::Gpu& gpu) const {
  Links links;
  for (unsigned link = 0; link < kMostLinks && look(handle, link, links);) ++link;
  for (auto& [target, row] : links.rows) gpu.nvlinks.push_back(std::move(row));
  const std::string name = fmt::format("GPU {} ({})", gpu.number, seen.busId);
  if (links.down > 0) remark(fmt::format("{}: {} of its NVLinks are down", name, links.down));
  if (links.unclear > 0)
    remark(
        fmt::format("{}: NVML does not tell where {} of its NVLinks lead; they are not counted", name, links.unclear));
}

SeenGpu Looking::gpu(unsigned index) const {
  Handle handle = nullptr;
  PciInfo pci{};
  int major = 0, minor = 0;
  nvml_.check(byIndex_(index, &handle), fmt::format("does not show GPU {}", index));
  nvml_.check(pci_(handle, &pci), fmt::format("does not tell where GPU {} is on the bus", index));
  SeenGpu seen{busIdOf(pci), {}};
  seen.gpu.number = static_cast<int>(index);
  if (capability_(handle, &major, &minor) == Nvml::kSuccess) seen.gpu.sm = major * 10 + minor;
  addNvLinks(handle, seen, seen.gpu);
  return seen;
}

std::vector<SeenGpu> Looking::all() const {
  unsigned count = 0;
  nvml_.check(count_(&count), "does not tell how many GPUs there are");
  std::vector<SeenGpu> seen;
  for (unsigned index = 0; index < count && index < kMostGpus; ++index) try {
      seen.push_back(gpu(index));
    } catch (const Error& error) {  // one that has failed is no reason to see none
      remark(error.what());
    }
  return seen;
}

}  // namespace

std::vector<SeenGpu> seenByNvml(const char* library, std::vector<std::string>& remarks) try {
  return Looking(library, remarks).all();
} catch (const Error& error) {
  remarks.push_back(fmt::format("{}: GPUs' numbers, generations and NVLinks are unknown", error.what()));
  return {};
}

}  // namespace tutti::detect
