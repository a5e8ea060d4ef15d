// A process that ends without destroying its communicators on a GPU, whatever is queued there: it ends, with the status
// that it wants, and asks nothing of a driver that may have ended before.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "emulation/device_fixture.h"
#include "emulation/other_process.h"
#include "support/api_ranks.h"

namespace tutti::test {
namespace {

constexpr int kStatus = 7;  // (a kernel that is cut off frees nothing: nobody looks for leaks)
constexpr size_t kExitCount = 1000;

// What lives on while the process ends.
int32_t exitValues[2][kExitCount];

tuttiResult_t addUp(tuttiComm_t comm, int rank, cudaStream_t stream) {
  return tuttiAllReduce(exitValues[rank], exitValues[rank], kExitCount, tuttiInt32, tuttiSum, comm, stream);
}

cudaStream_t newStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// Two ranks of one GPU, of which so many have queued a call.
void exitWith(int queued, bool waits) {
  const int devices[2] = {0, 0};
  tuttiComm_t comms[2] = {};
  CHECK_TUTTI(tuttiCommInitAll(comms, 2, devices));
  const cudaStream_t streams[2] = {newStream(), newStream()};
  for (int rank = 0; rank < queued; ++rank) CHECK_TUTTI(addUp(comms[rank], rank, streams[rank]));
  for (int rank = 0; waits && rank < queued; ++rank) EXPECT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
  std::exit(kStatus);
}

TEST(GpuExitProcess, DISABLED_Idle) { exitWith(0, false); }
TEST(GpuExitProcess, DISABLED_AfterACall) { exitWith(2, true); }
TEST(GpuExitProcess, DISABLED_WithCallsQueued) { exitWith(2, false); }
TEST(GpuExitProcess, DISABLED_WithACallThatWaits) { exitWith(1, false); }

TEST(GpuExit, EndsWhateverIsQueued) {
  for (const char* engine : {"kernel", "stream"})
    for (const char* how : {"Idle", "AfterACall", "WithCallsQueued", "WithACallThatWaits"})
      EXPECT_EQ(emulation::statusOfOtherProcess(
                    std::string("GpuExitProcess.DISABLED_") + how,
                    {std::string("TUTTI_ENGINE=") + engine, "TUTTI_GPU_BUFFER_MIB=1", "ASAN_OPTIONS=detect_leaks=0"}),
                kStatus)
          << how << ", " << engine;
}

}  // namespace
}  // namespace tutti::test
