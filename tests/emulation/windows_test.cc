// Direct links between GPUs: of one process, and of several, which map each other's registered buffers.
#include <gtest/gtest.h>

#include <thread>

#include "emulation/arena.h"
#include "emulation/control.h"
#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "emulation/handed_over.h"
#include "emulation/other_process.h"
#include "schedule/algorithm.h"
#include "support/patience.h"

namespace tutti::test {
namespace {

using device::test::expectSays;
using device::test::thrownBy;
using emulation::handedOver;
using emulation::handing;
using emulation::Sharing;
using faults::Operation;

constexpr size_t kArenaBytes = 16 << 20;
const std::vector<size_t> kWindowCounts =
    kSanitized ? std::vector<size_t>{1033} : std::vector<size_t>{0, 1, 1000, 20'001};

// Emulated GPUs for as long as it lives.
struct Gpus {
  explicit Gpus(int count) { emulation::setDeviceCount(count); }
  ~Gpus() { emulation::setDeviceCount(1); }
};

// Memory of a GPU, of the kind that the test is about.
class GpuMemory {
 public:
  enum class Kind : uint8_t { kShareable, kCudaMalloc, kPool };
  GpuMemory(Kind kind, int device) : kind_(kind) {
    if (cudaSetDevice(device) != cudaSuccess) throw std::bad_alloc();
    cudaError_t status = cudaSuccess;
    if (kind == Kind::kShareable)
      CHECK_TUTTI(tuttiMemAllocDevice(&memory_, kArenaBytes, device, 0));
    else
      status = kind == Kind::kCudaMalloc ? cudaMalloc(&memory_, kArenaBytes)
                                         : cudaMallocAsync(&memory_, kArenaBytes, nullptr);
    if (status != cudaSuccess || cudaStreamSynchronize(nullptr) != cudaSuccess) throw std::bad_alloc();
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() {
    if (kind_ == Kind::kShareable)
      tuttiMemFree(memory_);
    else
      cudaFree(memory_);
  }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  Kind kind_;
  void* memory_ = nullptr;
};

std::vector<Setting> simply(const std::string& algorithm) {
  return {{"TUTTI_ALGO", algorithm}, {"TUTTI_PROTOCOL", "simple"}, {"TUTTI_CHANNELS", "2"}, {"TUTTI_GROUP_SIZE", "2"}};
}

// --- of one process ---

class GpusOfAProcess : public ::testing::TestWithParam<GpuMemory::Kind> {};

// Ranks on two GPUs, two of them on one, whose buffers are all on the first.
TEST_P(GpusOfAProcess, UseWhatIsOpenToThem) {
  const Gpus gpus(2);
  const GpuMemory memory(GetParam(), 0);
  Arena arena(memory.data(), kArenaBytes);
  uint64_t direct = 0;
  {
    const GpuRanks gpu({0, 1, 0}, simply("twoshot"));
    for (int rank = 0; rank < gpu.size(); ++rank) arena.registerAt(gpu[rank]);
    for (Operation operation : everyKind(gpu.size(), kWindowCounts)) {
      EXPECT_EQ(gpu.run(operation), "");
      arena.reset();
    }
    for (int rank = 0; rank < gpu.size(); ++rank) direct += directSlots(gpu[rank]);
  }
  EXPECT_EQ(direct != 0, GetParam() != GpuMemory::Kind::kPool);
}

std::string nameOf(const ::testing::TestParamInfo<GpuMemory::Kind>& with) {
  return with.param == GpuMemory::Kind::kShareable    ? "Shareable"
         : with.param == GpuMemory::Kind::kCudaMalloc ? "CudaMalloc"
                                                      : "Pool";
}
INSTANTIATE_TEST_SUITE_P(All, GpusOfAProcess,
                         ::testing::Values(GpuMemory::Kind::kShareable, GpuMemory::Kind::kCudaMalloc,
                                           GpuMemory::Kind::kPool),
                         nameOf);

// --- of several processes ---

struct Job {
  int ranks = 2;
  std::string algorithm = "twoshot";
  bool fabric = false;  // and every rank on a host of its own
  GpuMemory::Kind kind = GpuMemory::Kind::kShareable;
};

// A rank of a process of its own, with a GPU and memory of its own.
class Rank {
 public:
  Rank(const Job& job, int rank, const tuttiUniqueId& id)
      : job_(job), rank_(rank), gpus_(job.ranks), memory_(job.kind, rank), arena_(memory_.data(), kArenaBytes) {
    auto settings = simply(job.algorithm) + std::vector<Setting>{{"TUTTI_GPU_BUFFER_MIB", "1"}};
    if (job.fabric) settings.push_back({"TUTTI_HOST_ID", std::to_string(rank + 1)});
    const Settings set(settings);
    tuttiConfig_t config = testConfig();
    const std::string device = "cuda:" + std::to_string(rank);
    config.device = device.c_str();
    CHECK_TUTTI(tuttiCommInitRankConfig(&comm_, job.ranks, id, rank, &config));
  }
  ~Rank() { tuttiCommDestroy(comm_); }

  void registerAll() { handle_ = arena_.registerAt(comm_); }
  void deregister() { CHECK_TUTTI(tuttiCommDeregister(comm_, handle_)); }
  uint64_t direct() const { return directSlots(comm_); }

  // Until slots of some rank are direct: not every rank has such in every algorithm. All leave it at the same call.
  void awaitDirect() {
    const auto deadline = std::chrono::steady_clock::now() + longWait();
    const uint64_t before = direct();
    while (largest(direct() > before) == 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "rank " << rank_;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Every collective and message, in and out of place.
  void runAll() {
    for (Operation operation : everyKind(job_.ranks, kWindowCounts))
      for (const bool inPlace : {false, true}) {
        operation.inPlace = inPlace;
        {
          faults::Part part(operation, rank_, job_.ranks);
          CHECK_TUTTI(part.issue(comm_, nullptr));
          finish();
          EXPECT_EQ(part.check(), "") << operation.describe() << ", rank " << rank_;
        }
        arena_.reset();
      }
  }
  // A graph holds what it was captured with, whatever ends meanwhile.
  void replayAfterDeregistering() {
    constexpr size_t kCount = 2000;
    bool moved = false;
    {
      const std::pmr::vector<int32_t> values(kCount, 1);
      std::pmr::vector<int32_t> results(kCount);
      cudaStream_t stream = nullptr;
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t ready = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      CHECK_TUTTI(tuttiAllReduce(values.data(), results.data(), kCount, tuttiInt32, tuttiSum, comm_, stream));
      ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
      deregister();
      const uint64_t before = direct();
      for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      EXPECT_EQ(results, std::pmr::vector<int32_t>(kCount, job_.ranks));
      moved = direct() > before;
      cudaGraphExecDestroy(ready);
      cudaGraphDestroy(graph);
      cudaStreamDestroy(stream);
    }
    arena_.reset();
    EXPECT_EQ(largest(moved), 1);
  }
  // An all-reduce out of place, as not every algorithm is direct in place.
  int32_t largest(int32_t value) {
    constexpr size_t kCount = 2000;
    int32_t result = 0;
    {
      const std::pmr::vector<int32_t> values(kCount, value);
      std::pmr::vector<int32_t> results(kCount);
      CHECK_TUTTI(tuttiAllReduce(values.data(), results.data(), kCount, tuttiInt32, tuttiMax, comm_, nullptr));
      finish();
      result = results[0];
      EXPECT_EQ(results, std::pmr::vector<int32_t>(kCount, result));
    }
    arena_.reset();
    return result;
  }

 private:
  void finish() {
    ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    tuttiResult_t state = tuttiSuccess;
    CHECK_TUTTI(tuttiCommGetAsyncError(comm_, &state));
    check(state, "the communicator", comm_);
  }

  Job job_;
  int rank_;
  Gpus gpus_;
  GpuMemory memory_;
  Arena arena_;
  tuttiComm_t comm_ = nullptr;
  void* handle_ = nullptr;
};

void runRank(const Job& job, int rank, const tuttiUniqueId& id) {
  Rank self(job, rank, id);
  if (job.kind != GpuMemory::Kind::kShareable) {  // whoever can not share goes on without
    self.registerAll();
    self.runAll();
    const uint64_t toItself = self.direct();
    self.largest(1);
    EXPECT_EQ(self.direct(), toItself);
    return;
  }
  for (int round = 0; round < 3; ++round) {  // a number that has been given back is given out again
    self.registerAll();
    self.awaitDirect();
    if (round == 0) self.runAll();
    self.deregister();
    self.largest(1);  // everyone has deregistered
    const uint64_t before = self.direct();
    self.largest(1);
    EXPECT_EQ(self.direct(), before);
  }
  self.registerAll();
  self.awaitDirect();
  self.replayAfterDeregistering();
}

TEST(WindowsProcess, DISABLED_RunsARank) {
  const Bytes bytes = handedOver();
  if (bytes.empty()) GTEST_SKIP() << "runs only as a process of another test";
  Reader in(bytes);
  Job job;
  const int rank = in.value<int>();
  job.ranks = in.value<int>();
  job.algorithm = in.text();
  job.fabric = in.value<bool>();
  job.kind = in.oneOf(GpuMemory::Kind::kShareable, GpuMemory::Kind::kPool);
  tuttiUniqueId id;
  std::memcpy(&id, in.block().data(), sizeof id);
  runRank(job, rank, id);
}

void runJob(const Job& job) {
  emulation::setSharing(job.fabric ? Sharing::kFabric : Sharing::kVirtual);
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<pid_t> others;
  for (int rank = 1; rank < job.ranks; ++rank) {
    std::vector<std::string> settings = {handing(Writer()
                                                     .value(rank)
                                                     .value(job.ranks)
                                                     .text(job.algorithm)
                                                     .value(job.fabric)
                                                     .value(job.kind)
                                                     .block(std::as_bytes(std::span(&id, 1)))
                                                     .take())};
    if (job.fabric) settings.push_back("TUTTI_TEST_FABRIC=1");
    others.push_back(emulation::startOtherProcess("WindowsProcess.DISABLED_RunsARank", settings));
  }
  runRank(job, 0, id);
  for (const pid_t other : others) EXPECT_EQ(emulation::statusOf(other), 0);
  emulation::setSharing(Sharing::kVirtual);
}

TEST(Windows, OpenBetweenTwoProcesses) { runJob({}); }
TEST(Windows, OpenBetweenThreeProcessesForEveryAlgorithm) {
  for (int algorithm = 0; algorithm < schedule::kBuiltInAlgorithms; algorithm += kSanitized ? 3 : 1)
    runJob({.ranks = 3, .algorithm = std::string(nameOf(static_cast<schedule::Algorithm>(algorithm)))});
}
TEST(Windows, OpenBetweenHostsOverAFabric) { runJob({.fabric = true}); }
TEST(Windows, StayShutForMemoryOfOneProcessAlone) { runJob({.kind = GpuMemory::Kind::kCudaMalloc}); }

// --- what one process offers another ---

class BuffersOffered : public device::test::OnGpu {
 protected:
  static constexpr size_t kBytes = 40'000;
  void SetUp() override {
    OnGpu::SetUp();
    memory_ = device_->allocateForUsers(kBytes);
  }
  std::unique_ptr<device::DeviceMemory> memory_;
};

TEST_F(BuffersOffered, ArePartsOfMemoryThatIsMappedWhole) {
  device_->writePattern(memory_->data + 128, 1000, 7);
  const auto offer = device_->offerBuffer(memory_->data + 128, 1000);
  ASSERT_TRUE(offer.descriptor);
  const auto accepted = device_->acceptBuffer(offer.record, offer.descriptor);
  EXPECT_NE(accepted->data, memory_->data + 128);
  EXPECT_EQ(accepted->bytes, 1000u);
  EXPECT_TRUE(device_->checkPattern(accepted->data, 1000, 7));
  memory_.reset();  // its owner may do what it likes
  EXPECT_TRUE(device_->checkPattern(accepted->data, 1000, 7));
}

TEST_F(BuffersOffered, AreRefusedWhenTheyCanNotBe) {
  const auto plain = device_->allocate(kBytes);
  expectSays(thrownBy([&] { device_->offerBuffer(plain->data, kBytes); }), ErrorCode::kCuda, {"tuttiMemAllocDevice"});
  expectSays(thrownBy([&] { device_->offerBuffer(memory_->data, size_t{1} << 30); }), ErrorCode::kCuda, {"several"});
  int local = 0;
  EXPECT_EQ(thrownBy([&] { device_->offerBuffer(reinterpret_cast<const std::byte*>(&local), sizeof local); }).code,
            ErrorCode::kCuda);
}

// Whatever a changed byte stands for, the answer is an error, or memory that is there to its end.
TEST_F(BuffersOffered, ComeWithRecordsThatAreChecked) {
  const auto offer = device_->offerBuffer(memory_->data, kBytes);
  expectSays(thrownBy([&] { device_->acceptBuffer(offer.record, {}); }), ErrorCode::kRemote, {"descriptor"});
  for (size_t length = 0; length < offer.record.size(); ++length) {
    const std::span cut(offer.record.data(), length);
    EXPECT_EQ(thrownBy([&] { device_->acceptBuffer(cut, offer.descriptor); }).code, ErrorCode::kRemote) << length;
  }
  for (size_t at = 0; at < offer.record.size(); ++at) {
    Bytes changed = offer.record;
    changed[at] ^= std::byte{0x5a};
    try {
      const auto accepted = device_->acceptBuffer(changed, offer.descriptor);
      device_->checkPattern(accepted->data, accepted->bytes, 0);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kRemote || error.code() == ErrorCode::kCuda) << at << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace tutti::test
