// What goes wrong between ranks on the GPU is an error that names the calls and the ranks, never a hang: the kernels
// leave the GPU, and what comes after them works.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "api/handle.h"
#include "device/protocol.h"
#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "gpu/executor.h"

namespace tutti::test {
namespace {

using device::test::Stream;

void expectWords(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' in: " << text;
}

// Ranks of one GPU of which each is driven by itself, on a stream of its own.
class Fault : public ::testing::Test {
 protected:
  void open(int ranks, std::vector<Setting> settings = {}) {
    settings.push_back({"TUTTI_CHANNELS", "2"});
    ASSERT_EQ(cudaHostRegister(memory_, sizeof memory_, cudaHostRegisterMapped), cudaSuccess);
    gpu_ = std::make_unique<GpuRanks>(ranks, std::move(settings));
    for (int rank = 0; rank < ranks; ++rank) streams_.push_back(std::make_unique<Stream>());
  }
  tuttiComm_t comm(int rank) const { return (*gpu_)[rank]; }
  cudaStream_t stream(int rank) const { return *streams_[static_cast<size_t>(rank)]; }
  void reduce(int rank, size_t count, tuttiDataType_t type = tuttiFloat32, tuttiRedOp_t op = tuttiSum) {
    std::byte* const own = memory_ + rank * (sizeof memory_ / 4);
    CHECK_TUTTI(tuttiAllReduce(own, own, count, type, op, comm(rank), stream(rank)));
  }

  // What a rank of two sends the other and expects of it in an all-to-all-v: in floats.
  void exchange(int rank, size_t sends, size_t expects) {
    auto* const own = reinterpret_cast<float*>(memory_) + rank * 4096;
    size_t sent[2] = {}, received[2] = {};
    const size_t places[2] = {};
    sent[1 - rank] = sends;
    received[1 - rank] = expects;
    CHECK_TUTTI(
        tuttiAllToAllV(own, sent, places, own + 2048, received, places, tuttiFloat32, comm(rank), stream(rank)));
  }

  // In floats, what rank 0, the root, and rank 1 say is to go from one to the other in a gather-v or a scatter-v.
  void gather(int rank, size_t expects, size_t sends) {
    auto* const own = reinterpret_cast<float*>(memory_) + rank * 4096;
    const size_t counts[2] = {0, expects}, places[2] = {};
    CHECK_TUTTI(tuttiGatherV(own, rank == 0 ? 0 : sends, own + 2048, rank == 0 ? counts : nullptr, places, tuttiFloat32,
                             0, comm(rank), stream(rank)));
  }
  void scatter(int rank, size_t sends, size_t expects) {
    auto* const own = reinterpret_cast<float*>(memory_) + rank * 4096;
    const size_t counts[2] = {0, sends}, places[2] = {};
    CHECK_TUTTI(tuttiScatterV(own, rank == 0 ? counts : nullptr, places, own + 2048, rank == 0 ? 0 : expects,
                              tuttiFloat32, 0, comm(rank), stream(rank)));
  }

  // The kernel has left the GPU, whatever became of it.
  void expectLeft(int rank) { EXPECT_EQ(cudaStreamSynchronize(stream(rank)), cudaSuccess); }

  void expectError(int rank, tuttiResult_t wanted, std::initializer_list<const char*> words) {
    tuttiResult_t state = tuttiSuccess;
    for (int i = 0; i < 2000 && state == tuttiSuccess; ++i) {  // 10 s
      CHECK_TUTTI(tuttiCommGetAsyncError(comm(rank), &state));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(state, wanted) << "rank " << rank << ": " << tuttiGetLastError(comm(rank));
    expectWords(tuttiGetLastError(comm(rank)), words);
  }

  static void expectWorks() {
    const GpuRanks another(2, {{"TUTTI_CHANNELS", "2"}});
    faults::Operation operation;
    operation.count = 1000;
    EXPECT_EQ(another.run(operation), "");
  }

  void TearDown() override {
    for (const auto& one : streams_) EXPECT_EQ(cudaStreamSynchronize(*one), cudaSuccess);
    (void)cudaHostUnregister(memory_);  // a test that opened nothing registered nothing
    gpu_.reset();
    expectWorks();
  }

  alignas(16) std::byte memory_[1 << 16] = {};
  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<GpuRanks> gpu_;
};

class DeviceMismatch : public Fault, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { open(2, settingsOf(GetParam())); }
  static bool inStreams() { return std::string(GetParam()) == "stream"; }
  // A kernel that has nothing to wait for. A stream waits for word from the other rank in any case.
  void expectOver(int rank) {
    if (!inStreams()) expectLeft(rank);
  }
  void expectBoth(std::initializer_list<const char*> words) {
    for (int rank = 0; rank < 2; ++rank) {
      expectError(rank, tuttiInvalidUsage, words);
      expectLeft(rank);
    }
  }
};

TEST_P(DeviceMismatch, OfCountsNamesBothCalls) {
  reduce(0, 1000);
  reduce(1, 999);
  expectBoth({"all-reduce #0", "1000 elements", "999 elements", "rank 0 (", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfTypesNamesBothCalls) {
  reduce(0, 100, tuttiFloat32);
  reduce(1, 100, tuttiInt32);
  expectBoth({"all-reduce #0", "float", "int32"});
}

TEST_P(DeviceMismatch, OfOperatorsNamesBothCalls) {
  reduce(0, 100, tuttiFloat32, tuttiSum);
  reduce(1, 100, tuttiFloat32, tuttiMax);
  expectBoth({"all-reduce #0", "sum", "max"});
}

TEST_P(DeviceMismatch, OfCollectivesNamesBothCalls) {
  reduce(0, 100);
  CHECK_TUTTI(tuttiAllGather(memory_, memory_ + 1024, 100, tuttiFloat32, comm(1), stream(1)));
  expectBoth({"all-reduce #0", "all-gather #0"});
}

TEST_P(DeviceMismatch, AfterCallsThatMatchedSaysWhichOne) {
  for (int i = 0; i < 3; ++i)
    for (int rank = 0; rank < 2; ++rank) reduce(rank, 500);
  for (int rank = 0; rank < 2; ++rank) expectLeft(rank);
  reduce(0, 100);
  reduce(1, 200);
  expectBoth({"all-reduce #3", "100 elements", "200 elements"});
}

TEST_P(DeviceMismatch, OfMessagesNamesBothSides) {
  CHECK_TUTTI(tuttiSend(memory_, 100, tuttiFloat32, 1, comm(0), stream(0)));
  CHECK_TUTTI(tuttiRecv(memory_ + 4096, 50, tuttiFloat32, 0, comm(1), stream(1)));
  expectBoth({"100 elements", "50 elements"});
}

TEST_P(DeviceMismatch, OfAMessageOfNothingNamesBothSides) {
  CHECK_TUTTI(tuttiSend(memory_, 0, tuttiFloat32, 1, comm(0), stream(0)));
  CHECK_TUTTI(tuttiRecv(memory_ + 4096, 50, tuttiFloat32, 0, comm(1), stream(1)));
  expectBoth({"0 elements", "50 elements"});
}

TEST_P(DeviceMismatch, OfAReceiveOfNothingNamesBothSides) {
  CHECK_TUTTI(tuttiSend(memory_, 50, tuttiFloat32, 1, comm(0), stream(0)));
  CHECK_TUTTI(tuttiRecv(memory_ + 4096, 0, tuttiFloat32, 0, comm(1), stream(1)));
  expectBoth({"50 elements", "0 elements"});
}

TEST_P(DeviceMismatch, OfAPartThatIsNotExpectedNamesBothSides) {
  exchange(0, 64, 0);
  expectOver(0);
  exchange(1, 0, 0);
  expectBoth({"counts do not match in all-to-all-v #0", "rank 0 (", " sent ", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfAPartThatIsNotSentNamesBothSides) {
  exchange(0, 0, 0);
  exchange(1, 0, 64);
  expectBoth({"counts do not match in all-to-all-v #0", "rank 0 (", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfAPartThatComesTooLateIsFoundAtTheNextCall) {
  exchange(1, 0, 0);
  expectOver(1);
  exchange(0, 64, 0);
  expectOver(0);
  for (int rank = 0; rank < 2 && !inStreams(); ++rank) exchange(rank, 0, 0);
  expectBoth({"counts do not match in all-to-all-v #0", "rank 0 (", " sent ", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfAPartThatTheRootDoesNotExpectNamesBothSides) {
  gather(1, 0, 64);
  expectOver(1);
  gather(0, 0, 64);
  expectBoth({"counts do not match in gather-v #0", "rank 0 (", " sent ", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfAPartThatTheRootIsNotSentNamesBothSides) {
  for (const int rank : {1, 0}) gather(rank, 64, 0);
  expectBoth({"counts do not match in gather-v #0", "rank 0 (", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfARootsPartThatIsNotExpectedNamesBothSides) {
  scatter(0, 64, 0);
  expectOver(0);
  scatter(1, 64, 0);
  expectBoth({"counts do not match in scatter-v #0", "rank 0 (", " sent ", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfAPartThatTheRootDoesNotSendNamesBothSides) {
  for (const int rank : {0, 1}) scatter(rank, 0, 64);
  expectBoth({"counts do not match in scatter-v #0", "rank 0 (", "rank 1 ("});
}

TEST_P(DeviceMismatch, OfPartsOfOtherLengthsNamesBothSides) {
  for (const int rank : {1, 0}) gather(rank, 64, 32);
  expectBoth({"counts do not match in gather-v #0", " sent ", " expected "});
}

std::vector<const char*> everyWay() {
  std::vector<const char*> ways{"stream"};
  for (const ProtocolRow& protocol : kProtocolRows) ways.push_back(protocol.name.data());
  return ways;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceMismatch, ::testing::ValuesIn(everyWay()),
                         [](const auto& way) { return std::string(way.param); });

// What ends the waits of kernels, and of streams.
class DeviceWaits : public Fault, public ::testing::WithParamInterface<const char*> {};

TEST_P(DeviceWaits, ForARankThatDoesNotComeEndWithTheTimeAndNameIt) {
  open(3, settingsOf(GetParam()) + std::vector<Setting>{{"TUTTI_OPERATION_TIMEOUT_MS", "300"}});
  reduce(0, 100);
  reduce(1, 100);
  for (int rank = 0; rank < 2; ++rank) {
    expectError(rank, tuttiTimeout, {"all-reduce #0", "300 ms", "rank 2 ("});
    expectLeft(rank);
  }
}

TEST_P(DeviceWaits, EndWithAnAbort) {
  open(2, settingsOf(GetParam()));
  reduce(0, 100);
  std::thread([&] { CHECK_TUTTI(tuttiCommAbort(comm(0))); }).join();
  expectLeft(0);
}

TEST_P(DeviceWaits, EndWithARevocationByAnotherRank) {
  open(2, settingsOf(GetParam()));
  reduce(0, 100);
  std::thread([&] { CHECK_TUTTI(tuttiCommRevoke(comm(1), 0)); }).join();
  expectLeft(0);
  expectError(0, tuttiRemoteError, {"rank 1 ("});
  EXPECT_EQ(tuttiAllReduce(memory_, memory_, 1, tuttiFloat32, tuttiSum, comm(0), stream(0)), tuttiRemoteError);
}

// Long messages: many slots are waited for, one after the other.
TEST_P(DeviceWaits, EndWithAnAbortHoweverManyThereAre) {
  open(2, settingsOf(GetParam()) + std::vector<Setting>{{"TUTTI_ALGO", "ring"}});
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 8 << 20), cudaSuccess);
  CHECK_TUTTI(tuttiBroadcast(memory, memory, 8 << 20, tuttiInt8, 0, comm(0), stream(0)));
  std::thread([&] { CHECK_TUTTI(tuttiCommAbort(comm(0))); }).join();
  expectLeft(0);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceWaits, ::testing::Values("simple", "stream"),
                         [](const auto& way) { return std::string(way.param); });

// What a rank says that is damaged, or not to be trusted: rank 0, for which the test speaks.
class DeviceSpots : public Fault {
 protected:
  static constexpr size_t kCount = 100;
  // Its first message to rank 1, of which it says that it lies there.
  void post(link::RemoteAddress there) {
    auto& side = dynamic_cast<gpu::GpuExecutor&>(comm(0)->communicator->executor());
    comm::Call call;
    call.collective = Collective::kSendRecv;
    call.sends = true;
    call.root = 1;
    call.send = memory_;
    call.count = kCount;
    call.type = DataType::kFloat32;
    side.beginGroup();
    const device::KernelWork work = side.workFor(call, side.programFor(call), false);
    link::SlotHeader& header = *work.seat.sendEnds[work.seat.endIndex(Protocol::kSimple, 0, 1)].fifo.headers;
    header.fingerprint = work.fingerprint;
    header.bytes = kCount * sizeof(float);
    header.carried = link::PayloadLocation::kAtSender;
    std::memcpy(header.inlined, &there, sizeof there);
    header.sequence.store(1, std::memory_order_release);  // with awaitPosted in the kernel
  }
  void receive(int rank, int from) {
    CHECK_TUTTI(tuttiRecv(memory_ + rank * 4096, kCount, tuttiFloat32, from, comm(rank), stream(rank)));
  }
};

TEST_F(DeviceSpots, OfWhatIsTheSendersAreFollowed) {
  open(2, settingsOf("simple"));
  auto* const sent = reinterpret_cast<float*>(memory_ + 8192);
  for (size_t i = 0; i < kCount; ++i) sent[i] = static_cast<float>(i);
  post({reinterpret_cast<uint64_t>(sent), 0});
  receive(1, 0);
  expectLeft(1);
  EXPECT_EQ(std::memcmp(memory_ + 4096, sent, kCount * sizeof(float)), 0);
}

// Also for those who have nothing to do with it.
TEST_F(DeviceSpots, OfWhatIsNotEndTheJobAndNameTheSender) {
  open(3, settingsOf("simple"));
  receive(2, 1);
  post({0, 5});
  receive(1, 0);
  const auto words = {"rank 0 (", "speaks of a buffer that rank 1 (", "to be trusted"};
  for (const int rank : {1, 0, 2}) {
    expectError(rank, tuttiRemoteError, words);
    expectLeft(rank);
  }
  expectWords(tuttiGetLastError(comm(2)), {"rank 1 (", " gave up: rank 0 ("});
}

class DeviceTrouble : public Fault {};

// --- what can not be made at all ---

// Makes a communicator of two ranks, and returns what each was told.
std::vector<std::string> tryToMake(const char* device0, const char* device1, tuttiResult_t wanted) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  std::vector<std::string> told(2);
  runRanks(2, [&](int rank) {
    tuttiConfig_t config = testConfig();
    config.joinTimeoutMs = 3000;
    config.device = rank == 0 ? device0 : device1;
    tuttiComm_t comm = nullptr;
    EXPECT_EQ(tuttiCommInitRankConfig(&comm, 2, id, rank, &config), wanted) << "rank " << rank;
    told[static_cast<size_t>(rank)] = tuttiGetLastError(nullptr);
    if (comm) tuttiCommDestroy(comm);
  });
  return told;
}

TEST_F(DeviceTrouble, HostAndGpuDoNotMix) {
  for (const std::string& text : tryToMake("cpu", "cuda:0", tuttiInvalidUsage))
    expectWords(text, {"rank 0", "host memory", "rank 1", "on a GPU", "TUTTI_DEVICE"});
}

TEST_F(DeviceTrouble, AGpuThatIsNotThereIsRefused) {
  for (const std::string& text : tryToMake("cuda:7", "cuda:7", tuttiInvalidArgument))
    expectWords(text, {"no GPU 7", "has 1"});
  for (const std::string& text : tryToMake("gpu", "cuda:x", tuttiInvalidArgument))
    expectWords(text, {"config.device", "cpu, cuda or cuda:N"});
}

// CUDA would read what is behind it.
TEST_F(DeviceTrouble, AStreamForHostMemoryIsRefused) {
  const GpuRanks gpu(1);
  tuttiStream_t stream = nullptr;
  CHECK_TUTTI(tuttiStreamCreate(&stream, 0));
  const auto expectRefused = [&] {
    EXPECT_EQ(tuttiBarrier(gpu[0], stream), tuttiInvalidArgument);
    expectWords(tuttiGetLastError(gpu[0]), {"tuttiBarrier: stream", "tuttiStreamCreate", "GPU", "CUDA"});
  };
  expectRefused();
  CHECK_TUTTI(tuttiGroupStart());
  expectRefused();
  EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidArgument);
  CHECK_TUTTI(tuttiStreamDestroy(stream));
  expectRefused();
  CHECK_TUTTI(tuttiBarrier(gpu[0], nullptr));
  gpu.finish();
}

TEST_F(DeviceTrouble, AProtocolThatIsNoneIsRefused) {
  const Settings wrong({Setting{"TUTTI_PROTOCOL", "fast"}});
  tuttiComm_t comms[2];
  const int devices[2] = {0, 0};
  EXPECT_EQ(tuttiCommInitAll(comms, 2, devices), tuttiInvalidArgument);
  expectWords(tuttiGetLastError(nullptr), {"TUTTI_PROTOCOL: 'fast'", "simple, ll, ll128"});
}

// Each communicator is promised blocks, and there are only so many.
TEST_F(DeviceTrouble, MoreCommunicatorsThanTheGpuHasBlocksForAreRefused) {
  std::vector<std::unique_ptr<GpuRanks>> all;
  std::string text;
  while (text.empty() && all.size() < 100) try {
      all.push_back(std::make_unique<GpuRanks>(2, std::vector<Setting>{{"TUTTI_CHANNELS", "8"}}));
    } catch (const std::runtime_error& refusal) {
      text = refusal.what();
    }
  EXPECT_GE(all.size(), 2u);
  expectWords(text, {"blocks", "destroy communicators"});
  faults::Operation operation;
  operation.count = 100;
  for (const auto& one : all) EXPECT_EQ(one->run(operation), "");  // those that are there are not hurt
}

}  // namespace
}  // namespace tutti::test
