// Memory that the library shares by virtual memory management: callers' buffers, and the pools of ranks whose GPUs a
// fabric joins, also from host to host.
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>

#include "device_fixture.h"
#include "emulation/control.h"
#include "emulation/gpu_ranks.h"
#include "emulation/handed_over.h"
#include "emulation/other_process.h"

namespace tutti::test {
namespace {

using device::test::expectSays;
using device::test::thrownBy;
using emulation::handedOver;
using emulation::handing;
using emulation::setSharing;
using emulation::Sharing;
using emulation::startOtherProcess;
using emulation::statusOf;
using emulation::statusOfOtherProcess;

constexpr size_t kBytes = 40000;
constexpr uint64_t kOfMaker = 17, kOfTaker = 18;

bool isVirtual(const void* memory) {
  cudaIpcMemHandle_t handle;
  const bool refused = cudaIpcGetMemHandle(&handle, const_cast<void*>(memory)) != cudaSuccess;
  cudaGetLastError();
  return refused;
}

// --- of one process, and another ---

class DeviceFabric : public device::test::OnGpu {
 protected:
  void TearDown() override { setSharing(Sharing::kVirtual); }

  // Another process maps the memory, finds this one's pattern there and leaves its own. Returns what was exported.
  Bytes expectMappedElsewhere(const device::DeviceMemory& memory, bool overFabric) {
    device_->writePattern(memory.data, kBytes, kOfMaker);
    const Bytes exported = device_->exportMemory(memory);
    EXPECT_EQ(device_->goesToOtherHosts(exported), overFabric);
    std::vector<std::string> settings = {handing(exported)};
    if (overFabric) settings.push_back("TUTTI_TEST_FABRIC=1");
    EXPECT_EQ(statusOfOtherProcess("FabricProcess.DISABLED_MapsAndAnswers", settings), 0);
    EXPECT_TRUE(device_->checkPattern(memory.data, kBytes, kOfTaker));
    return exported;
  }
};

TEST(FabricProcess, DISABLED_MapsAndAnswers) {
  const Bytes exported = handedOver();
  if (exported.empty()) GTEST_SKIP() << "runs only as a process of another test";
  const auto device = device::openDevice(0);
  const auto memory = device->importMemory(exported, false);
  ASSERT_EQ(memory->bytes, kBytes);
  ASSERT_TRUE(device->checkPattern(memory->data, kBytes, kOfMaker));
  device->writePattern(memory->data, kBytes, kOfTaker);
}

TEST(FabricProcess, DISABLED_IsRefused) {
  const Bytes exported = handedOver();
  if (exported.empty()) GTEST_SKIP() << "runs only as a process of another test";
  expectSays(thrownBy([&] { device::openDevice(0)->importMemory(exported, false); }), ErrorCode::kCuda,
             {"GPU 0", "bytes", "process"});
}

TEST_F(DeviceFabric, AnotherProcessMapsAPoolOverIt) {
  setSharing(Sharing::kFabric);
  const auto memory = device_->allocateForPeers(kBytes);
  EXPECT_EQ(read(memory->data, kBytes), std::vector<std::byte>(kBytes));
  const Bytes exported = expectMappedElsewhere(*memory, true);
  // A process that the fabric does not serve is told so.
  EXPECT_EQ(statusOfOtherProcess("FabricProcess.DISABLED_IsRefused", {handing(exported)}), 0);
}

TEST_F(DeviceFabric, WithoutItAPoolGoesByCudaIpcToThisHostAlone) {
  for (const Sharing sharing : {Sharing::kVirtual, Sharing::kNone}) {
    setSharing(sharing);
    const auto memory = device_->allocateForPeers(kBytes);
    expectMappedElsewhere(*memory, false);
  }
}

TEST_F(DeviceFabric, WithinTheProcessAPoolIsTheSameMemory) {
  setSharing(Sharing::kFabric);
  auto memory = device_->allocateForPeers(kBytes);
  device_->writePattern(memory->data, kBytes, kOfMaker);
  const auto taken = device_->importMemory(device_->exportMemory(*memory), true);
  EXPECT_EQ(taken->data, memory->data);
  memory.reset();
  EXPECT_TRUE(device_->checkPattern(taken->data, kBytes, kOfMaker)) << "the taker owns it too";
}

TEST_F(DeviceFabric, UsersMemoryStaysWithinTheProcess) {
  const auto memory = device_->allocateForUsers(kBytes);
  EXPECT_TRUE(isVirtual(memory->data));
  const Bytes exported = device_->exportMemory(*memory);
  EXPECT_FALSE(device_->goesToOtherHosts(exported));
  EXPECT_EQ(device_->importMemory(exported, true)->data, memory->data);
  EXPECT_EQ(statusOfOtherProcess("FabricProcess.DISABLED_IsRefused", {handing(exported)}), 0);
}

TEST_F(DeviceFabric, UsersMemoryGoesOverItToo) {
  setSharing(Sharing::kFabric);
  const auto memory = device_->allocateForUsers(kBytes);
  expectMappedElsewhere(*memory, true);
}

// --- tuttiMemAllocDevice ---

class MemAllocDevice : public ::testing::TestWithParam<Sharing> {
 protected:
  void SetUp() override { setSharing(GetParam()); }
  void TearDown() override { setSharing(Sharing::kVirtual); }
};

TEST_P(MemAllocDevice, GivesZeroedMemoryThatCollectivesUse) {
  constexpr size_t kCount = 3000;
  const GpuRanks gpu(2, {{"TUTTI_CHANNELS", "2"}});
  std::vector<int32_t*> buffers(2);
  for (int32_t*& buffer : buffers) {
    void* memory = nullptr;
    CHECK_TUTTI(tuttiMemAllocDevice(&memory, kCount * sizeof(int32_t), 0, 0));
    buffer = static_cast<int32_t*>(memory);
    EXPECT_EQ(isVirtual(memory), GetParam() != Sharing::kNone);
    std::vector<int32_t> copy(kCount, 1);
    ASSERT_EQ(cudaMemcpy(copy.data(), buffer, kCount * sizeof(int32_t), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(copy, std::vector<int32_t>(kCount));
    copy.assign(kCount, 21);
    ASSERT_EQ(cudaMemcpy(buffer, copy.data(), kCount * sizeof(int32_t), cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<void*> handles(2);
  for (int rank = 0; rank < 2; ++rank)
    CHECK_TUTTI(tuttiCommRegister(gpu[rank], buffers[static_cast<size_t>(rank)], kCount * sizeof(int32_t),
                                  &handles[static_cast<size_t>(rank)], 0));
  gpu.together([&](int rank) {
    int32_t* const own = buffers[static_cast<size_t>(rank)];
    return tuttiAllReduce(own, own, kCount, tuttiInt32, tuttiSum, gpu[rank], nullptr);
  });
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<int32_t> copy(kCount);
    int32_t* const own = buffers[static_cast<size_t>(rank)];
    ASSERT_EQ(cudaMemcpy(copy.data(), own, kCount * sizeof(int32_t), cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(copy, std::vector<int32_t>(kCount, 42));
    CHECK_TUTTI(tuttiCommDeregister(gpu[rank], handles[static_cast<size_t>(rank)]));
    CHECK_TUTTI(tuttiMemFree(own));
    EXPECT_EQ(tuttiMemFree(own), tuttiInvalidArgument);
  }
}

std::string nameOf(const ::testing::TestParamInfo<Sharing>& with) {
  return with.param == Sharing::kNone ? "None" : with.param == Sharing::kVirtual ? "Virtual" : "Fabric";
}

INSTANTIATE_TEST_SUITE_P(All, MemAllocDevice, ::testing::Values(Sharing::kNone, Sharing::kVirtual, Sharing::kFabric),
                         nameOf);

TEST(MemAllocDeviceWords, OfHostMemoryAndOfGpusThatAreNotThere) {
  void* memory = nullptr;
  CHECK_TUTTI(tuttiMemAllocDevice(&memory, 100, -1, 0));
  std::memset(memory, 1, 100);
  CHECK_TUTTI(tuttiMemFree(memory));
  EXPECT_EQ(tuttiMemAllocDevice(&memory, 100, 7, 0), tuttiInvalidArgument);
  EXPECT_NE(std::string(tuttiGetLastError(nullptr)).find("no GPU 7"), std::string::npos);
  EXPECT_EQ(tuttiMemAllocDevice(&memory, 100, -2, 0), tuttiInvalidArgument);
  EXPECT_EQ(tuttiMemAllocDevice(nullptr, 100, 0, 0), tuttiInvalidArgument);
}

// --- ranks in two processes, on hosts of their own as far as they are told, each with a GPU of its own ---

// All that one of them does. Says whether its links were `wanted`.
void reduceAsRank(int rank, const tuttiUniqueId& id, const char* wanted) {
  emulation::setDeviceCount(2);
  tuttiConfig_t config = testConfig();
  const std::string device = fmt::format("cuda:{}", rank);
  config.device = device.c_str();
  tuttiComm_t comm = nullptr;
  const Settings set({{"TUTTI_GPU_BUFFER_MIB", "1"}, {"TUTTI_CHANNELS", "2"}, {"TUTTI_HOST_ID", device}});
  CHECK_TUTTI(tuttiCommInitRankConfig(&comm, 2, id, rank, &config));
  for (const size_t count : {size_t{3}, size_t{1000}, size_t{100'000}}) {
    std::vector<int32_t> values(count, rank + 1);
    CHECK_TUTTI(tuttiAllReduce(values.data(), values.data(), count, tuttiInt32, tuttiSum, comm, nullptr));
    CHECK_TUTTI(tuttiCommFinalize(comm));
    EXPECT_EQ(values, std::vector<int32_t>(count, 3));
  }
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
  EXPECT_STREQ(stats.lastTransports, wanted);
  CHECK_TUTTI(tuttiCommDestroy(comm));
}

bool fabricIsThere() { return std::getenv("TUTTI_TEST_FABRIC") != nullptr; }

tuttiUniqueId idOf(const Bytes& bytes) {
  tuttiUniqueId id;
  if (bytes.size() != sizeof id) throw std::runtime_error("another id was handed over");
  std::memcpy(&id, bytes.data(), sizeof id);
  return id;
}

TEST(FabricProcess, DISABLED_ReducesAsRank1) {
  const Bytes bytes = handedOver();
  if (bytes.empty()) GTEST_SKIP() << "runs only as a process of another test";
  reduceAsRank(1, idOf(bytes), fabricIsThere() ? "p2p" : "tcp");
}

TEST(FabricProcess, DISABLED_ReducesAsRank0AndTellsWhatJoinsThem) {
  const Bytes bytes = handedOver();
  if (bytes.empty()) GTEST_SKIP() << "runs only as a process of another test";
  ::testing::internal::CaptureStderr();
  reduceAsRank(0, idOf(bytes), "p2p");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("NVLink joins all GPUs"), std::string::npos) << log;
}

void reduceFromHostToHost(bool fabric) {
  setSharing(fabric ? Sharing::kFabric : Sharing::kVirtual);
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<std::string> settings = {handing(std::as_bytes(std::span(&id, 1)))};
  if (fabric) settings.push_back("TUTTI_TEST_FABRIC=1");
  const pid_t other = startOtherProcess("FabricProcess.DISABLED_ReducesAsRank1", settings);
  reduceAsRank(0, id, fabric ? "p2p" : "tcp");
  EXPECT_EQ(statusOf(other), 0);
  emulation::setDeviceCount(1);
  setSharing(Sharing::kVirtual);
}

TEST(FabricHosts, ReachEachOthersPoolsWhereItJoinsThem) { reduceFromHostToHost(true); }
TEST(FabricHosts, GoThroughTheirOwnMemoryWhereItDoesNot) { reduceFromHostToHost(false); }

// NVML knows nothing of the other host's GPU: that the fabric reaches it says enough.
TEST(FabricHosts, AreJoinedByNvlinkWhereItJoinsThem) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  const std::vector<std::string> settings = {handing(std::as_bytes(std::span(&id, 1))), "TUTTI_TEST_FABRIC=1",
                                             "TUTTI_DEBUG=info"};
  const pid_t first = startOtherProcess("FabricProcess.DISABLED_ReducesAsRank0AndTellsWhatJoinsThem", settings);
  const pid_t second = startOtherProcess("FabricProcess.DISABLED_ReducesAsRank1", settings);
  EXPECT_EQ(statusOf(first), 0);
  EXPECT_EQ(statusOf(second), 0);
}

}  // namespace
}  // namespace tutti::test
