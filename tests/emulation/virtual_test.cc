// Virtual memory management of the emulation: what it lets pass and what it refuses.
#include <cuda.h>
#include <unistd.h>

#include <cstring>

#include "emulation_fixture.h"

namespace tutti::emulation {
namespace {

constexpr size_t kGranule = 2 << 20;

CUmemAllocationProp properties(int handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
  CUmemAllocationProp made{};
  made.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(handles);
  made.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return made;
}

class VirtualTest : public EmulationTest {
 protected:
  void TearDown() override {
    setSharing(Sharing::kVirtual);
    EmulationTest::TearDown();
  }
  static CUmemGenericAllocationHandle create(int handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp wanted = properties(handles);
    EXPECT_EQ(cuMemCreate(&handle, kGranule, &wanted, 0), CUDA_SUCCESS);
    return handle;
  }
  static CUdeviceptr reserve() {
    CUdeviceptr address = 0;
    EXPECT_EQ(cuMemAddressReserve(&address, kGranule, 0, 0, 0), CUDA_SUCCESS);
    return address;
  }
  static CUresult open(CUdeviceptr address) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemSetAccess(address, kGranule, &access, 1);
  }
  // Mapped and open.
  static CUdeviceptr map(CUmemGenericAllocationHandle handle) {
    const CUdeviceptr address = reserve();
    EXPECT_EQ(cuMemMap(address, kGranule, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(open(address), CUDA_SUCCESS);
    return address;
  }
  static void expectGone(CUdeviceptr address) {
    EXPECT_EQ(cuMemUnmap(address, kGranule), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressFree(address, kGranule), CUDA_SUCCESS);
  }
  static int& at(CUdeviceptr address) { return *reinterpret_cast<int*>(address); }
};

TEST_F(VirtualTest, MappedMemoryIsMemoryOfTheDeviceUntilItIsUnmapped) {
  const auto handle = create();
  const CUdeviceptr address = map(handle);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS) << "the mapping keeps the memory";
  const int sent = 7;
  int got = 0;
  auto* const there = reinterpret_cast<void*>(address + kGranule - sizeof sent);
  EXPECT_EQ(cudaMemcpy(there, &sent, sizeof sent, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&got, there, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(got, sent);
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, there), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  cudaIpcMemHandle_t ipc;
  EXPECT_EQ(cudaIpcGetMemHandle(&ipc, reinterpret_cast<void*>(address)), cudaErrorInvalidValue);
  (void)cudaGetLastError();
  expectGone(address);
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, there), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(VirtualTest, MemoryIsNotThereBeforeAccessIsSet) {
  const auto handle = create();
  const CUdeviceptr address = reserve();
  EXPECT_EQ(cuMemMap(address, kGranule, 0, handle, 0), CUDA_SUCCESS);
  const int sent = 7;
  EXPECT_NE(cudaMemcpy(reinterpret_cast<void*>(address), &sent, sizeof sent, cudaMemcpyHostToDevice), cudaSuccess);
  (void)cudaGetLastError();
  EXPECT_EQ(open(address), CUDA_SUCCESS);
  EXPECT_EQ(open(address), CUDA_SUCCESS) << "twice does no harm";
  at(address) = 7;
  expectGone(address);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
}

TEST_F(VirtualTest, SizesAreWholeGranules) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  const auto wanted = properties();
  size_t granule = 0;
  EXPECT_EQ(cuMemGetAllocationGranularity(&granule, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
  EXPECT_EQ(granule, kGranule);
  for (const size_t bytes : {size_t{0}, size_t{1}, kGranule - 1, kGranule + 4096}) {
    EXPECT_EQ(cuMemCreate(&handle, bytes, &wanted, 0), CUDA_ERROR_INVALID_VALUE) << bytes;
    EXPECT_EQ(cuMemAddressReserve(&address, bytes, 0, 0, 0), CUDA_ERROR_INVALID_VALUE) << bytes;
  }
}

TEST_F(VirtualTest, WhatIsGivenBackTwiceIsRefused) {
  const auto handle = create();
  const CUdeviceptr address = map(handle);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(address, kGranule), CUDA_ERROR_INVALID_VALUE) << "something is mapped there";
  EXPECT_EQ(cuMemUnmap(address, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(address, kGranule), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(address, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(address, kGranule), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualTest, AddressesTakeOneMappingAndMustBeReserved) {
  const auto handle = create();
  const CUdeviceptr address = map(handle);
  EXPECT_EQ(cuMemMap(address, kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemMap(address + kGranule, kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(open(address + kGranule), CUDA_ERROR_INVALID_VALUE);
  expectGone(address);
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(reserve(), kGranule, 0, handle, 0), CUDA_ERROR_INVALID_VALUE) << "the handle is gone";
}

TEST_F(VirtualTest, ADescriptorIsTheSameMemory) {
  const auto handle = create();
  int fd = -1;
  EXPECT_EQ(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  EXPECT_EQ(cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  ::close(fd);
  const CUdeviceptr one = map(handle), other = map(again);
  at(one) = 42;
  EXPECT_EQ(at(other), 42);
  for (const CUdeviceptr address : {one, other}) expectGone(address);
  for (const auto each : {handle, again}) EXPECT_EQ(cuMemRelease(each), CUDA_SUCCESS);
}

TEST_F(VirtualTest, WithoutAFabricThereAreNoHandlesForIt) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemFabricHandle shareable{};
  int value = 1;
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  const auto wanted = properties(CU_MEM_HANDLE_TYPE_FABRIC);
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &wanted, 0), CUDA_ERROR_NOT_SUPPORTED);
  const auto plain = create();
  EXPECT_EQ(cuMemExportToShareableHandle(&shareable, plain, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemImportFromShareableHandle(&handle, &shareable, CU_MEM_HANDLE_TYPE_FABRIC), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(cuMemRelease(plain), CUDA_SUCCESS);
}

TEST_F(VirtualTest, AHandleOfTheFabricIsTheSameMemoryUntilItIsGone) {
  setSharing(Sharing::kFabric);
  const auto handle = create(CU_MEM_HANDLE_TYPE_FABRIC);
  CUmemFabricHandle shareable{};
  EXPECT_EQ(cuMemExportToShareableHandle(&shareable, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  EXPECT_EQ(cuMemImportFromShareableHandle(&again, &shareable, CU_MEM_HANDLE_TYPE_FABRIC), CUDA_SUCCESS);
  const CUdeviceptr one = map(handle), other = map(again);
  at(one) = 42;
  EXPECT_EQ(at(other), 42);
  for (const CUdeviceptr address : {one, other}) expectGone(address);
  for (const auto each : {handle, again}) EXPECT_EQ(cuMemRelease(each), CUDA_SUCCESS);
  EXPECT_EQ(cuMemImportFromShareableHandle(&again, &shareable, CU_MEM_HANDLE_TYPE_FABRIC), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualTest, ADeviceMayHaveNoneOfIt) {
  setSharing(Sharing::kNone);
  int value = 1;
  EXPECT_EQ(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0), CUDA_SUCCESS);
  EXPECT_EQ(value, 0);
  CUmemGenericAllocationHandle handle = 0;
  const auto wanted = properties();
  EXPECT_EQ(cuMemCreate(&handle, kGranule, &wanted, 0), CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace tutti::emulation
