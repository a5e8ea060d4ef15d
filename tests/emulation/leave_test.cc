// A rank on a GPU that waits for one that will not come is told so, and soon: by whichever engine it waits, and
// whether the other is of its process or of another one, has left, gave up, died, or is in another call.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <thread>

#include "emulation/control.h"
#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "emulation/handed_over.h"
#include "emulation/other_process.h"

namespace tutti::test {
namespace {

using device::test::Stream;
using emulation::handedOver;

constexpr size_t kLeaveValues = 1000;
constexpr const char* kEndOf = "TUTTI_TEST_END";       // of rank 1 in its process
constexpr const char* kOwnGpu = "TUTTI_TEST_OWN_GPU";  // that each of the two has
constexpr int kShortDeadline = 3000;                   // beyond the time after which a rank is asked

// The last call of rank 0, which waits for rank 1, and of rank 1 where it is in another one. Neither sends: what comes
// tells nobody anything.
void awaitRootOf(tuttiComm_t comm, int root, int32_t* values, cudaStream_t stream, uint64_t tag = 0) {
  tuttiCallConfig_t config = TUTTI_CALL_CONFIG_INITIALIZER;
  config.tag = tag;
  CHECK_TUTTI(tuttiBroadcastConfig(values, values, kLeaveValues, tuttiInt32, root, comm, stream, &config));
}

// Pinned: what is queued in streams would hold up whoever queues copies of other memory of the host.
class PinnedValues {
 public:
  PinnedValues() {
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&data_), kLeaveValues * sizeof(int32_t)), cudaSuccess);
  }
  PinnedValues(const PinnedValues&) = delete;
  PinnedValues& operator=(const PinnedValues&) = delete;
  ~PinnedValues() { EXPECT_EQ(cudaFreeHost(data_), cudaSuccess); }
  operator int32_t*() const noexcept { return data_; }

 private:
  int32_t* data_ = nullptr;
};

struct LeaveTold {
  tuttiResult_t state = tuttiSuccess;
  std::string text;
};

LeaveTold whatBecameOf(tuttiComm_t comm) {
  LeaveTold told;
  const auto deadline = std::chrono::steady_clock::now() + 3 * longWait();
  while (told.state == tuttiSuccess && std::chrono::steady_clock::now() < deadline) {
    CHECK_TUTTI(tuttiCommGetAsyncError(comm, &told.state));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  told.text = tuttiGetLastError(comm);
  return told;
}

struct LeaveEnd {
  const char* name;
  tuttiResult_t state;
  std::vector<const char*> words;
  bool ofProcess = false;  // it needs a process of its own

  friend void PrintTo(const LeaveEnd& end, std::ostream* out) { *out << end.name; }
};

std::vector<LeaveEnd> everyLeaveEnd() {
  return {{"destroy", tuttiRemoteError, {"rank 1 (", "has left", "broadcast #1", "on rank 0 still waits"}},
          {"exit", tuttiRemoteError, {"rank 1 (", "its process ended", "broadcast #1", "on rank 0 still waits"}, true},
          {"call", tuttiInvalidUsage, {"calls do not match", "root 0", "root 1"}},
          {"abort", tuttiRemoteError, {"rank 1 ("}},
          {"death", tuttiRemoteError, {"rank 1 ("}, true},
          {"absence", tuttiTimeout, {"broadcast #1", "3000 ms", "waits on its GPU for rank 1 ("}}};
}

void expectToldOfLeave(const LeaveTold& told, const LeaveEnd& end) {
  EXPECT_EQ(told.state, end.state) << told.text;
  for (const char* word : end.words) EXPECT_NE(told.text.find(word), std::string::npos) << word << " in: " << told.text;
}

int timeoutFor(const std::string& end) {
  return end == "absence" ? kShortDeadline : static_cast<int>(longWait().count());
}

// What rank 1 does instead of the call that rank 0 waits in by then. Whoever is in another call or in none waits for
// the end.
void leaveAs(const std::string& end, tuttiComm_t comm, int32_t* values, cudaStream_t stream) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200) * patience());
  if (end == "exit") std::exit(0);
  if (end == "death") std::raise(SIGKILL);
  if (end == "abort") return CHECK_TUTTI(tuttiCommAbort(comm));
  if (end == "call") awaitRootOf(comm, 0, values, stream);
  if (end == "call" || end == "absence") whatBecameOf(comm);
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

// --- in one process ---

using LeaveCase = std::tuple<const char*, LeaveEnd>;  // engine, end

class DeviceLeaveInProcess : public ::testing::TestWithParam<LeaveCase> {};

TEST_P(DeviceLeaveInProcess, EndsWhatWaitsForIt) {
  const auto& [engine, end] = GetParam();
  const Settings set({{"TUTTI_ENGINE", engine},
                      {"TUTTI_GPU_BUFFER_MIB", "1"},
                      {"TUTTI_OPERATION_TIMEOUT_MS", std::to_string(timeoutFor(end.name))}});
  const int devices[2] = {0, 0};
  tuttiComm_t comms[2] = {};
  CHECK_TUTTI(tuttiCommInitAll(comms, 2, devices));
  const Stream streams[2];
  const PinnedValues values[2];
  for (int rank = 0; rank < 2; ++rank) CHECK_TUTTI(tuttiBarrier(comms[rank], streams[rank]));
  for (const Stream& stream : streams) stream.finish();
  awaitRootOf(comms[0], 1, values[0], streams[0]);
  std::thread other([&] { leaveAs(end.name, comms[1], values[1], streams[1]); });
  expectToldOfLeave(whatBecameOf(comms[0]), end);
  other.join();
  for (const Stream& stream : streams) stream.finish();
  EXPECT_EQ(tuttiCommDestroy(comms[0]), tuttiSuccess);
}

class DeviceLeaveOfTagged : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, DeviceLeaveOfTagged, ::testing::Values("kernel", "copy", "stream"),
                         [](const auto& engine) { return std::string(engine.param); });

TEST_P(DeviceLeaveOfTagged, ACallHasTheSameEnd) {
  GpuRanks gpu(2, {{"TUTTI_ENGINE", GetParam()}});
  const Stream stream;
  const PinnedValues values;
  awaitRootOf(gpu[0], 1, values, stream, 77);
  std::this_thread::sleep_for(std::chrono::milliseconds(200) * patience());
  CHECK_TUTTI(tuttiCommDestroy(gpu.release(1)));
  expectToldOfLeave(whatBecameOf(gpu[0]),
                    {"", tuttiRemoteError, {"rank 1 (", "has left", "broadcast #0", "tag 77", "still waits"}});
  stream.finish();
}

// A call so long that its caller, who may queue only so much, waits itself.
TEST(DeviceLeave, OfARankEndsWhoStillQueuesWhatWaitsForIt) {
  constexpr size_t kLong = 64 << 20;
  GpuRanks gpu(2, settingsOf("stream"));
  const Stream stream;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kLong), cudaSuccess);
  CHECK_TUTTI(tuttiCommDestroy(gpu.release(1)));
  tuttiBroadcast(memory, memory, kLong, tuttiInt8, 1, gpu[0], stream);  // comes back in any case
  expectToldOfLeave(whatBecameOf(gpu[0]),
                    {"", tuttiRemoteError, {"rank 1 (", "has left", "broadcast #0", "still waits"}});
  stream.finish();
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

std::vector<LeaveCase> leaveCasesOf(std::initializer_list<const char*> engines, bool processes) {
  std::vector<LeaveCase> cases;
  for (const char* engine : engines)
    for (const LeaveEnd& end : everyLeaveEnd())
      if (processes || !end.ofProcess) cases.emplace_back(engine, end);
  return cases;
}

std::string nameOfLeaveCase(const ::testing::TestParamInfo<LeaveCase>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceLeaveInProcess,
                         ::testing::ValuesIn(leaveCasesOf({"kernel", "copy", "stream"}, false)), nameOfLeaveCase);

// --- messages, which are numbered by themselves ---

class DeviceMessage : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr size_t kLong = 4 << 20;  // more than its slots hold
  // One that has come, and then one that nobody is there for.
  void expectNamed(bool sends, const char* word) {
    GpuRanks gpu(2, {{"TUTTI_ENGINE", GetParam()}});
    const Stream streams[2];
    std::byte* memory = nullptr;
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 2 * kLong), cudaSuccess);
    const auto queue = [&](int rank) {
      std::byte* const own = memory + static_cast<size_t>(rank) * kLong;
      CHECK_TUTTI((rank == 0) == sends ? tuttiSend(own, kLong, tuttiInt8, 1 - rank, gpu[rank], streams[rank])
                                       : tuttiRecv(own, kLong, tuttiInt8, 1 - rank, gpu[rank], streams[rank]));
    };
    std::thread other([&] { queue(1); });
    queue(0);
    other.join();
    for (const Stream& stream : streams) stream.finish();
    queue(0);
    CHECK_TUTTI(tuttiCommDestroy(gpu.release(1)));
    expectToldOfLeave(whatBecameOf(gpu[0]),
                      {"", tuttiRemoteError, {"rank 1 (", "has left", word, "on rank 0 still waits"}});
    streams[0].finish();
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
};

TEST_P(DeviceMessage, ThatNobodySendsNamesTheRankThatHasLeft) { expectNamed(false, "receive from rank 1 #1"); }
TEST_P(DeviceMessage, ThatNobodyReceivesNamesTheRankThatHasLeft) { expectNamed(true, "send to rank 1 #1"); }

INSTANTIATE_TEST_SUITE_P(All, DeviceMessage, ::testing::Values("kernel", "copy", "stream"),
                         [](const auto& engine) { return std::string(engine.param); });

// --- between processes ---

// A rank of a process of its own, on a GPU of its own or on the one that there is.
class RankOfProcess {
 public:
  RankOfProcess(int rank, const tuttiUniqueId& id, int timeout) {
    tuttiConfig_t config = testConfig();
    config.operationTimeoutMs = timeout;
    const std::string device = "cuda:" + std::to_string(takeGpu(rank));
    config.device = device.c_str();
    stream_.emplace();
    values_.emplace();
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm_, 2, id, rank, &config));
    CHECK_TUTTI(tuttiBarrier(comm_, stream()));
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  }
  tuttiComm_t comm() const noexcept { return comm_; }
  cudaStream_t stream() const noexcept { return *stream_; }
  int32_t* values() const noexcept { return *values_; }
  void await(int root) { awaitRootOf(comm_, root, values(), stream()); }

 private:
  static int takeGpu(int rank) {
    const bool own = std::getenv(kOwnGpu) != nullptr;
    if (own) emulation::setDeviceCount(2);
    EXPECT_EQ(cudaSetDevice(own ? rank : 0), cudaSuccess);
    return own ? rank : 0;
  }
  tuttiComm_t comm_ = nullptr;
  std::optional<Stream> stream_;
  std::optional<PinnedValues> values_;
};

TEST(DeviceLeaveProcess, DISABLED_Rank1) {
  const Bytes bytes = handedOver();
  const char* const end = std::getenv(kEndOf);
  if (bytes.empty() || end == nullptr) GTEST_SKIP() << "runs only as a process of another test";
  tuttiUniqueId id;
  ASSERT_EQ(bytes.size(), sizeof id);
  std::memcpy(&id, bytes.data(), sizeof id);
  RankOfProcess rank(1, id, timeoutFor(end));
  leaveAs(end, rank.comm(), rank.values(), rank.stream());
}

class DeviceLeaveOfProcess : public ::testing::TestWithParam<LeaveCase> {
 protected:
  void TearDown() override { emulation::setDeviceCount(1); }
};

TEST_P(DeviceLeaveOfProcess, EndsWhatWaitsForIt) {
  const auto& [engine, end] = GetParam();
  const bool sharesGpu = std::string(engine) == "auto";
  const Settings set(std::vector<Setting>{{"TUTTI_ENGINE", engine}, {"TUTTI_GPU_BUFFER_MIB", "1"}, {kEndOf, end.name}} +
                     (sharesGpu ? std::vector<Setting>{} : std::vector<Setting>{{kOwnGpu, "1"}}));
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const pid_t other = emulation::startOtherProcess("DeviceLeaveProcess.DISABLED_Rank1",
                                                   {emulation::handing(std::as_bytes(std::span(&id, 1)))});
  {
    RankOfProcess rank(0, id, timeoutFor(end.name));
    rank.await(1);
    expectToldOfLeave(whatBecameOf(rank.comm()), end);
    EXPECT_EQ(cudaStreamSynchronize(rank.stream()), cudaSuccess);
    EXPECT_EQ(tuttiCommDestroy(rank.comm()), tuttiSuccess);
  }
  EXPECT_EQ(emulation::statusOf(other), std::string(end.name) == "death" ? -1 : 0);
}

// "auto": the two share a GPU, so that streams are chosen.
INSTANTIATE_TEST_SUITE_P(All, DeviceLeaveOfProcess,
                         ::testing::ValuesIn(leaveCasesOf({"kernel", "copy", "stream", "auto"}, true)),
                         nameOfLeaveCase);

}  // namespace
}  // namespace tutti::test
