// The emulation's NVML: a library that is found and opened as the real one is. TUTTI_TEST_NVLINK says what it knows, in
// islands of GPUs that NVLink joins, each GPU a hexadecimal digit: "012,3" are four GPUs, three of them joined. GPUs
// that are in no island it does not know. Where the variable is not set, there is no driver that it could ask.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

// NVML's numbers.
enum Status { kSuccess = 0, kInvalidArgument = 2, kNotFound = 6, kDriverNotLoaded = 9 };
constexpr int kByNvlink = 2, kOk = 0, kNotSupported = 5;

constexpr std::string_view kDigits = "0123456789abcdef";

// How many have begun and not ended: in between it answers.
std::atomic<int> users{0};

const char* islands() { return std::getenv("TUTTI_TEST_NVLINK"); }

// A handle is a GPU's ordinal, but never null.
void* handleOf(int gpu) { return reinterpret_cast<void*>(static_cast<uintptr_t>(gpu) + 1); }
char digitOf(const void* handle) { return kDigits[reinterpret_cast<uintptr_t>(handle) - 1]; }

// The identity of the GPU with number 0: see propertiesOf() of the emulated runtime.
constexpr std::string_view kFirst = "GPU-74757474-6920-656d-756c-6174696f6e00";

// -1 where the name is none of an emulated GPU.
int gpuOf(std::string_view name) {
  if (name.size() != kFirst.size() || name.substr(0, name.size() - 1) != kFirst.substr(0, name.size() - 1)) return -1;
  return static_cast<int>(kDigits.find(name.back()));
}

bool shareAnIsland(std::string_view all, char one, char other) {
  const size_t from = all.find(one), to = all.find(other);
  return all.substr(std::min(from, to), std::max(from, to) - std::min(from, to)).find(',') == std::string_view::npos;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (islands() == nullptr) return kDriverNotLoaded;
  ++users;
  return kSuccess;
}

int nvmlShutdown() {
  --users;
  return kSuccess;
}

const char* nvmlErrorString(int status) {
  return status == kDriverNotLoaded ? "Driver Not Loaded" : status == kNotFound ? "Not Found" : "Invalid Argument";
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** handle) {
  const int gpu = gpuOf(uuid);
  if (users <= 0 || islands() == nullptr || gpu < 0) return kInvalidArgument;
  *handle = handleOf(gpu);
  return std::string_view(islands()).find(digitOf(*handle)) == std::string_view::npos ? kNotFound : kSuccess;
}

int nvmlDeviceGetP2PStatus(void* one, void* other, int capability, int* status) {
  if (users <= 0 || capability != kByNvlink || one == other) return kInvalidArgument;
  *status = shareAnIsland(islands(), digitOf(one), digitOf(other)) ? kOk : kNotSupported;
  return kSuccess;
}

}  // extern "C"
