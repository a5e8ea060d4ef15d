// Memory: what is known of it, what is refused, and memory of another process.
#include <cuda.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "emulation/emulation_fixture.h"
#include "emulation/other_process.h"

namespace tutti::emulation {
namespace {

using MemoryTest = EmulationTest;

TEST_F(MemoryTest, newMemoryIsPoisonedAndCopiesReachIt) {
  std::byte* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 1000), cudaSuccess);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(device) % 256, 0u);
  std::vector<std::byte> host(1000);
  ASSERT_EQ(cudaMemcpy(host.data(), device, 1000, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::count(host.begin(), host.end(), std::byte{0xCB}), 1000);
  ASSERT_EQ(cudaMemset(device, 3, 1000), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(host.data(), device + 10, 990, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(std::count(host.begin(), host.begin() + 990, std::byte{3}), 990);
  EXPECT_EQ(cudaMemcpy(host.data(), device + 10, 991, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data() + 500, 500, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(device + 256), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&device, size_t{1} << 50), cudaErrorMemoryAllocation);
}

cudaMemoryType typeOf(const void* address) {
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, address), cudaSuccess);
  return attributes.type;
}

TEST_F(MemoryTest, pointersTellWhereTheyPoint) {
  char* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 100), cudaSuccess);
  Pinned<char> pinned(100);
  std::vector<char> plain(100);
  void* mapped = nullptr;
  EXPECT_EQ(typeOf(device + 99), cudaMemoryTypeDevice);
  EXPECT_EQ(typeOf(&pinned[50]), cudaMemoryTypeHost);
  EXPECT_EQ(typeOf(plain.data()), cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaHostGetDevicePointer(&mapped, plain.data(), 0), cudaErrorInvalidValue);
  ASSERT_EQ(cudaHostRegister(plain.data(), 100, cudaHostRegisterMapped), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(plain.data() + 5, 10, cudaHostRegisterMapped), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(typeOf(&plain[99]), cudaMemoryTypeHost);
  ASSERT_EQ(cudaHostGetDevicePointer(&mapped, plain.data(), 0), cudaSuccess);
  EXPECT_EQ(mapped, plain.data());
  EXPECT_EQ(cudaHostUnregister(plain.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(plain.data()), cudaErrorHostMemoryNotRegistered);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, reinterpret_cast<CUdeviceptr>(device + 77)), CUDA_SUCCESS);
  EXPECT_EQ(reinterpret_cast<char*>(base), device);
  EXPECT_EQ(bytes, 100u);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

__global__ void increment(unsigned* words) { words[threadIdx.x] += 1; }

TEST_F(MemoryTest, memoryOfAStreamLivesAsLongAsItsWork) {
  TestStream stream;
  unsigned* device = nullptr;
  Pinned<unsigned> out(64);
  cudaIpcMemHandle_t handle;
  ASSERT_EQ(cudaMallocAsync(&device, 64 * sizeof *device, stream), cudaSuccess);
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, device), cudaErrorInvalidValue);
  ASSERT_EQ(cudaMemsetAsync(device, 0, 64 * sizeof *device, stream), cudaSuccess);
  ASSERT_EQ(launch(increment, 1, 64, 0, stream, device), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(out.data(), device, 64 * sizeof *device, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(device, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(std::count(out.begin(), out.end(), 1u), 64);
  EXPECT_EQ(typeOf(device), cudaMemoryTypeUnregistered);
}

// --- memory of another process ---

constexpr size_t kWords = 300;  // no whole number of pages
constexpr char kHandle[] = "TUTTI_TEST_IPC_HANDLE", kGone[] = "TUTTI_TEST_IPC_GONE",
               kOther[] = "MemoryTest.DISABLED_theOtherProcess";

std::string hex(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char c : handle.reserved) {
    text += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    text += "0123456789abcdef"[c & 15];
  }
  return text;
}

cudaIpcMemHandle_t unhex(const std::string& text) {
  cudaIpcMemHandle_t handle{};
  for (size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handle;
}

// Runs only in the process that the test below starts.
TEST_F(MemoryTest, DISABLED_theOtherProcess) {
  const auto handle = unhex(std::getenv(kHandle));
  void *memory = nullptr, *again = nullptr;
  if (std::getenv(kGone)) {
    EXPECT_EQ(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess), cudaErrorInvalidValue);
    return;
  }
  ASSERT_EQ(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
  ASSERT_EQ(cudaIpcOpenMemHandle(&again, handle, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
  EXPECT_EQ(again, memory);
  EXPECT_EQ(typeOf(memory), cudaMemoryTypeDevice);
  ASSERT_EQ(launch(increment, 1, kWords, 0, nullptr, static_cast<unsigned*>(memory)), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(memory), cudaErrorInvalidValue);
}

TEST_F(MemoryTest, anotherProcessMapsIt) {
  unsigned* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kWords * sizeof *device), cudaSuccess);
  ASSERT_EQ(cudaMemset(device, 0, kWords * sizeof *device), cudaSuccess);
  ASSERT_EQ(launch(increment, 1, kWords, 0, nullptr, device), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  cudaIpcMemHandle_t handle;
  void* memory = nullptr;
  ASSERT_EQ(cudaIpcGetMemHandle(&handle, device), cudaSuccess);
  EXPECT_EQ(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
  const auto setting = fmt::format("{}={}", kHandle, hex(handle));
  EXPECT_EQ(statusOfOtherProcess(kOther, {setting}), 0);
  EXPECT_EQ(std::count(device, device + kWords, 2u), static_cast<ptrdiff_t>(kWords));
  ASSERT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(statusOfOtherProcess(kOther, {setting, fmt::format("{}=1", kGone)}), 0);
}

}  // namespace
}  // namespace tutti::emulation
