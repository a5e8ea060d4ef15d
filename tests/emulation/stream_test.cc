// Streams and events: what runs in order, what runs side by side, and what waits for what.
#include <cuda.h>

#include <atomic>
#include <thread>
#include <vector>

#include "emulation/emulation_fixture.h"

namespace tutti::emulation {
namespace {

using StreamTest = EmulationTest;

__global__ void waitFor(const uint32_t* flag, uint32_t value) {
  while (loadAcquire(flag) != value) {
  }
}
__global__ void set(uint32_t* flag, uint32_t value) { storeRelease(flag, value); }
__global__ void timesTenPlus(uint32_t* word, uint32_t digit) { *word = *word * 10 + digit; }

__global__ void copySecondOf(const uint64_t* words, uint64_t* seen) {
  while (loadAcquire(words) == 0) {
  }
  *seen = loadRelaxed(words + 1);
}

void appendFromHost(void* word) {
  auto* value = static_cast<uint32_t*>(word);
  *value = *value * 10 + 4;
}

TEST_F(StreamTest, aStreamKeepsItsOrder) {
  TestStream stream;
  Pinned<uint32_t> word(1), copy(1);
  uint32_t* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, sizeof *device), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(device, 0, sizeof *device, stream), cudaSuccess);
  for (uint32_t digit = 1; digit <= 3; ++digit)
    ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, stream, device, digit), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(word.data(), device, sizeof *device, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(stream, appendFromHost, word.data()), cudaSuccess);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, stream, word.data(), 5), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(word[0], 12345u);
  ASSERT_EQ(cudaFree(device), cudaSuccess);
}

TEST_F(StreamTest, streamsOverlapAndLaunchesReturnAtOnce) {
  TestStream one, two;
  Pinned<uint32_t> flag(1);
  ASSERT_EQ(launch(waitFor, 1, 32, 0, one, flag.data(), 1), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(one), cudaErrorNotReady);
  ASSERT_EQ(launch(set, 1, 1, 0, two, flag.data(), 1), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(one), cudaSuccess);
}

// A kernel that runs meanwhile sees each word as a whole; under tsan, too, it may look.
TEST_F(StreamTest, aFewWordsAreCopiedAsWords) {
  TestStream one, two;
  Pinned<uint64_t> words(2), seen(1), from(2, ~uint64_t{0});
  ASSERT_EQ(launch(copySecondOf, 1, 1, 0, one, words.data(), seen.data()), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(words.data(), from.data(), 2 * sizeof(uint64_t), cudaMemcpyDefault, two), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(one), cudaSuccess);
  EXPECT_TRUE(seen[0] == 0 || seen[0] == ~uint64_t{0}) << seen[0];
  ASSERT_EQ(cudaStreamSynchronize(two), cudaSuccess);
}

TEST_F(StreamTest, theNullStreamWaitsForBlockingStreamsAndTheyForIt) {
  TestStream blocking(cudaStreamDefault), free;
  Pinned<uint32_t> flags(2), word(1);
  ASSERT_EQ(launch(waitFor, 1, 1, 0, blocking, &flags[0], 1), cudaSuccess);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, blocking, word.data(), 1), cudaSuccess);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, nullptr, word.data(), 2), cudaSuccess);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, blocking, word.data(), 3), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  ASSERT_EQ(launch(set, 1, 1, 0, free, &flags[0], 1), cudaSuccess);  // waits for none of them
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(word[0], 123u);
}

TEST_F(StreamTest, eventsOrderStreams) {
  TestStream one, two;
  Pinned<uint32_t> flag(1), word(1);
  cudaEvent_t event = nullptr, later = nullptr, untimed = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&later), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);  // none recorded yet
  ASSERT_EQ(launch(waitFor, 1, 1, 0, one, flag.data(), 1), cudaSuccess);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, one, word.data(), 1), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, one), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(two, event), cudaSuccess);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, two, word.data(), 2), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(later, two), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(untimed, two), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, later), cudaErrorNotReady);
  storeRelease(flag.data(), 1);
  ASSERT_EQ(cudaEventSynchronize(later), cudaSuccess);
  EXPECT_EQ(word[0], 12u);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, later), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  ASSERT_EQ(cudaEventSynchronize(untimed), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, untimed), cudaErrorInvalidResourceHandle);
  for (const auto used : {event, later, untimed}) EXPECT_EQ(cudaEventDestroy(used), cudaSuccess);
}

template <class Function>
Function* driverFunction(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result), cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSuccess);
  return reinterpret_cast<Function*>(function);
}

TEST_F(StreamTest, streamsWaitForAndWriteValuesOfMemory) {
  const auto wait = driverFunction<decltype(cuStreamWaitValue64)>("cuStreamWaitValue64");
  const auto write = driverFunction<decltype(cuStreamWriteValue64)>("cuStreamWriteValue64");
  TestStream one, two;
  Pinned<uint64_t> counters(2);
  Pinned<uint32_t> word(1);
  const auto address = [&](size_t i) { return reinterpret_cast<CUdeviceptr>(&counters[i]); };
  ASSERT_EQ(wait(one, address(0), 3, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, one, word.data(), 2), cudaSuccess);
  ASSERT_EQ(write(one, address(1), 7, CU_STREAM_WRITE_VALUE_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, two, word.data(), 1), cudaSuccess);
  ASSERT_EQ(write(two, address(0), 4, CU_STREAM_WRITE_VALUE_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(wait(two, address(1), 7, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  ASSERT_EQ(launch(timesTenPlus, 1, 1, 0, two, word.data(), 3), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(word[0], 123u);
  EXPECT_EQ(wait(one, 8, 0, CU_STREAM_WAIT_VALUE_EQ), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamTest, aBatchWaitsAndWritesInItsOrder) {
  const auto queue = driverFunction<decltype(cuStreamBatchMemOp)>("cuStreamBatchMemOp");
  TestStream one, two;
  Pinned<uint64_t> words(3);
  const auto batch = [&](cudaStream_t stream, std::vector<CUstreamBatchMemOpParams> ops) {
    return queue(stream, static_cast<unsigned>(ops.size()), ops.data(), 0);
  };
  const auto op = [&](CUstreamBatchMemOpType type, size_t word, uint64_t value) {
    CUstreamBatchMemOpParams params{};
    params.waitValue.operation = type;
    params.waitValue.address = reinterpret_cast<CUdeviceptr>(&words[word]);
    params.waitValue.value64 = value;
    params.waitValue.flags = type == CU_STREAM_MEM_OP_WAIT_VALUE_64 ? CU_STREAM_WAIT_VALUE_EQ : 0;
    return params;
  };
  constexpr auto kWait = CU_STREAM_MEM_OP_WAIT_VALUE_64, kWrite = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  ASSERT_EQ(batch(one, {op(kWait, 0, 5), op(kWrite, 0, 6), op(kWrite, 1, 7)}), CUDA_SUCCESS);
  ASSERT_EQ(batch(two, {op(kWrite, 0, 5), op(kWait, 1, 7), op(kWrite, 2, 8)}), CUDA_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(std::vector<uint64_t>(words.begin(), words.end()), (std::vector<uint64_t>{6, 7, 8}));
  EXPECT_EQ(batch(one, {op(CU_STREAM_MEM_OP_WAIT_VALUE_32, 0, 5)}), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(batch(one, {}), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamTest, aBatchHasFewerThan256Operations) {
  const auto queue = driverFunction<decltype(cuStreamBatchMemOp)>("cuStreamBatchMemOp");
  Pinned<uint64_t> word(1);
  CUstreamBatchMemOpParams write{};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  write.writeValue.address = reinterpret_cast<CUdeviceptr>(word.data());
  write.writeValue.value64 = 3;
  std::vector<CUstreamBatchMemOpParams> ops(256, write);
  EXPECT_EQ(queue(nullptr, 256, ops.data(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(queue(nullptr, 255, ops.data(), 0), CUDA_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(word[0], 3u);
}

TEST_F(StreamTest, misuseIsAnError) {
  Pinned<uint32_t> word(1);
  EXPECT_EQ(launch(set, 0, 1, 0, nullptr, word.data(), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(launch(set, 1, dim3(32, 64), 0, nullptr, word.data(), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(set, 1, 1, 64 * 1024, nullptr, word.data(), 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFuncSetAttribute(set, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024), cudaSuccess);
  EXPECT_EQ(launch(set, 1, 1, 64 * 1024, nullptr, word.data(), 1), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  setDeviceCount(2);
  TestStream first;
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(launch(set, 1, 1, 0, first, word.data(), 1), cudaErrorInvalidResourceHandle);  // the other device's stream
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidResourceHandle), "cudaErrorInvalidResourceHandle");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorLaunchFailure), "unspecified launch failure");
}

TEST_F(StreamTest, devicesTellWhatTheyAre) {
  setDeviceCount(2);
  setMultiprocessors(3, 4);
  int count = 0, value = 0, blocks = 0, can = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  cudaDeviceProp first{}, second{};
  EXPECT_EQ(cudaGetDeviceProperties(&first, 0), cudaSuccess);
  EXPECT_EQ(cudaGetDeviceProperties(&second, 1), cudaSuccess);
  EXPECT_NE(std::string(first.uuid.bytes, 16), std::string(second.uuid.bytes, 16));
  EXPECT_NE(first.pciBusID, second.pciBusID);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1), cudaSuccess);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, set, 128, 0), cudaSuccess);
  EXPECT_EQ(blocks, 4);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  setDeviceCount(0);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
}

}  // namespace
}  // namespace tutti::emulation
