// An NVML that tests open by its path. TUTTI_TEST_BOX names the machine that it tells of; without it there is no
// driver. With TUTTI_OLD_NVML it is one of a driver from before NVLinks.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

// NVML's numbers.
enum Status { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kDriverNotLoaded = 9, kGpuIsLost = 15 };
enum Remote { kGpu = 0, kSwitch = 2 };

struct PciInfo {
  char legacyBusId[16];
  unsigned domain, bus, device;
  unsigned ids, subsystemIds;
  char busId[32];
};

// The other end of a link; `up` 0: it is down, and 2: where it leads is not told.
struct End {
  int up;
  unsigned domain, bus, device;
  int kind;
};

struct Box {
  std::string_view name;
  unsigned gpus, links;
  int lost;  // the GPU that has failed, or -1
  End (*end)(unsigned gpu, unsigned link);
};

unsigned busOf(unsigned gpu) { return 0x10 + gpu; }

// Eight GPUs with 12 links, two to each of six switches.
End toSwitch(unsigned, unsigned link) { return {1, 0, 0xc0 + link / 2, 0, kSwitch}; }
// Two GPUs with four links, the last of which is down.
End toOther(unsigned gpu, unsigned link) { return {link < 3, 0, busOf(1 - gpu), 0, kGpu}; }
End toHidden(unsigned, unsigned) { return {1, 0xffffffff, 0xff, 0xff, kSwitch}; }
End toNobodyKnows(unsigned, unsigned link) { return {link < 2 ? 2 : 1, 0, 0xc0, 0, kSwitch}; }

constexpr Box kBoxes[] = {{"switches", 8, 12, -1, toSwitch},
                          {"pair", 2, 4, -1, toOther},
                          {"lost", 3, 0, 1, toSwitch},
                          {"hidden", 2, 18, -1, toHidden},
                          {"unclear", 1, 6, -1, toNobodyKnows}};

const Box* box() {
  const char* const name = std::getenv("TUTTI_TEST_BOX");
  for (const Box& one : kBoxes)
    if (name != nullptr && one.name == name) return &one;
  return nullptr;
}

// A handle is a GPU's index, but never null.
unsigned indexOf(const void* handle) { return static_cast<unsigned>(reinterpret_cast<uintptr_t>(handle) - 1); }

void setPlace(PciInfo* pci, unsigned domain, unsigned bus, unsigned device) {
  *pci = {};
  pci->domain = domain;
  pci->bus = bus;
  pci->device = device;
  std::snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", domain, bus, device);
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return box() == nullptr ? kDriverNotLoaded : kSuccess; }
int nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(int status) {
  return status == kDriverNotLoaded ? "Driver Not Loaded" : status == kGpuIsLost ? "GPU is lost" : "Not Supported";
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = box()->gpus;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= box()->gpus) return kInvalidArgument;
  if (static_cast<int>(index) == box()->lost) return kGpuIsLost;
  *handle = reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
  return kSuccess;
}

int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* pci) {
  setPlace(pci, 0, busOf(indexOf(handle)), 0);
  return kSuccess;
}

int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 8;
  *minor = 0;
  return kSuccess;
}

#ifndef TUTTI_OLD_NVML
int nvmlDeviceGetNvLinkState(void* handle, unsigned link, int* state) {
  if (link >= box()->links) return kInvalidArgument;
  *state = box()->end(indexOf(handle), link).up != 0;
  return kSuccess;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* handle, unsigned link, PciInfo* pci) {
  const End end = box()->end(indexOf(handle), link);
  if (end.up == 2) return kNotSupported;
  setPlace(pci, end.domain, end.bus, end.device);
  return kSuccess;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void* handle, unsigned link, int* kind) {
  *kind = box()->end(indexOf(handle), link).kind;
  return kSuccess;
}
#endif

}  // extern "C"
