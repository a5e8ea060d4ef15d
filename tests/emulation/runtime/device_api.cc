#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "emulation/control.h"
#include "emulation/device/shared_memory.h"
#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"
#include "emulation/runtime/limits.h"

using namespace tutti::emulation;

namespace {

std::atomic<bool> peersReach{true};

cudaDeviceProp propertiesOf(const Device& device) {
  cudaDeviceProp all{};
  fmt::format_to_n(all.name, sizeof all.name - 1, "Emulated device {}", device.ordinal);
  std::memcpy(all.uuid.bytes, "tutti emulation", sizeof all.uuid.bytes);
  all.uuid.bytes[15] = static_cast<char>(device.ordinal);
  all.totalGlobalMem = kDeviceBytes;
  all.sharedMemPerBlock = kSharedBytes;
  all.sharedMemPerBlockOptin = all.sharedMemPerMultiprocessor = kSharedBytesOptIn;
  all.regsPerBlock = 65536;
  all.warpSize = 32;
  all.maxThreadsPerBlock = kMaxThreads;
  all.maxThreadsPerMultiProcessor = 2048;
  all.maxBlocksPerMultiProcessor = 32;
  std::copy_n(kMaxThreadsDim, 3, all.maxThreadsDim);
  std::copy_n(kMaxGrid, 3, all.maxGridSize);
  all.major = 9;
  all.multiProcessorCount = static_cast<int>(device.multiprocessors.load());
  all.pciDomainID = static_cast<int>(device.domain);
  all.pciBusID = static_cast<int>(device.bus);
  all.pciDeviceID = static_cast<int>(device.slot);
  all.canMapHostMemory = all.concurrentKernels = all.unifiedAddressing = all.cooperativeLaunch = 1;
  all.asyncEngineCount = 2;
  all.canUseHostPointerForRegisteredMem = all.hostNativeAtomicSupported = all.hostRegisterSupported = 1;
  return all;
}

cudaError_t attributeOf(const Device& device, cudaDeviceAttr attribute, int& value) {
  const auto all = propertiesOf(device);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      value = all.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxBlockDimX:
      value = all.maxThreadsDim[0];
      break;
    case cudaDevAttrMaxBlockDimY:
      value = all.maxThreadsDim[1];
      break;
    case cudaDevAttrMaxBlockDimZ:
      value = all.maxThreadsDim[2];
      break;
    case cudaDevAttrMaxGridDimX:
      value = all.maxGridSize[0];
      break;
    case cudaDevAttrMaxGridDimY:
      value = all.maxGridSize[1];
      break;
    case cudaDevAttrMaxGridDimZ:
      value = all.maxGridSize[2];
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      value = static_cast<int>(all.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      value = static_cast<int>(all.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      value = static_cast<int>(all.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrWarpSize:
      value = all.warpSize;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
      value = all.regsPerBlock;
      break;
    case cudaDevAttrClockRate:
      value = 1000000;
      break;
    case cudaDevAttrMultiProcessorCount:
      value = all.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      value = all.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      value = all.maxBlocksPerMultiProcessor;
      break;
    case cudaDevAttrPciBusId:
      value = all.pciBusID;
      break;
    case cudaDevAttrPciDeviceId:
      value = all.pciDeviceID;
      break;
    case cudaDevAttrPciDomainId:
      value = all.pciDomainID;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      value = all.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      value = all.minor;
      break;
    case cudaDevAttrAsyncEngineCount:
      value = all.asyncEngineCount;
      break;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrComputePreemptionSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrMemoryPoolsSupported:
      value = 1;
      break;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrCanFlushRemoteWrites:
    case cudaDevAttrHostRegisterReadOnlySupported:
    case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrMpsEnabled:
      value = 0;
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* number) {
  *number = deviceCount();
  return note(*number > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int ordinal) {
  if (!findDevice(ordinal)) return note(cudaErrorInvalidDevice);
  setCurrentDevice(ordinal);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* ordinal) {
  if (deviceCount() == 0) return note(cudaErrorNoDevice);
  *ordinal = currentDevice().ordinal;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  const Device* device = findDevice(ordinal);
  return note(device ? attributeOf(*device, attribute, *value) : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  const Device* device = findDevice(ordinal);
  if (!device) return note(cudaErrorInvalidDevice);
  *properties = propertiesOf(*device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int ordinal) {
  const Device* device = findDevice(ordinal);
  if (!device) return note(cudaErrorInvalidDevice);
  const auto text = fmt::format("{:04X}:{:02X}:{:02X}.0", device->domain, device->bus, device->slot);
  if (length <= static_cast<int>(text.size())) return note(cudaErrorInvalidValue);
  std::memcpy(id, text.c_str(), text.size() + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const auto error = unsafeCall();
  return note(error != cudaSuccess ? error : currentDevice().synchronize());
}

// Only the failure goes: memory and streams stay their owners' matter.
cudaError_t cudaDeviceReset() {
  (void)currentDevice().synchronize();
  currentDevice().failure.clear();
  return cudaSuccess;
}

namespace tutti::emulation {
void setPeerAccess(bool can) { peersReach = can; }
}  // namespace tutti::emulation

cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  if (!findDevice(ordinal) || !findDevice(peer)) return note(cudaErrorInvalidDevice);
  *can = ordinal != peer && peersReach;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  Device& device = currentDevice();
  if (flags != 0) return note(cudaErrorInvalidValue);
  if (!findDevice(peer) || peer == device.ordinal) return note(cudaErrorInvalidDevice);
  const std::lock_guard lock(device.mutex);
  return note(device.peers.insert(peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  Device& device = currentDevice();
  if (!findDevice(peer)) return note(cudaErrorInvalidDevice);
  const std::lock_guard lock(device.mutex);
  return note(device.peers.erase(peer) == 1 ? cudaSuccess : cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
