// The flight recorder of ranks on GPUs: how far a kernel is and whom it waits for, while it waits and after it has
// given up, and what tutti-doctor makes of the records of all ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "device/protocol.h"
#include "doctor/diagnose.h"
#include "doctor/records.h"
#include "emulation/device_fixture.h"
#include "emulation/gpu_ranks.h"
#include "support/record_folder.h"

namespace tutti::test {
namespace {

namespace fs = std::filesystem;
using device::test::Stream;
using doctor::Call;
using doctor::Record;
using doctor::State;

// Ranks of one GPU, each on a stream of its own, and their records.
class DeviceRecorder : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr size_t kCount = 1 << 20;  // bytes of each rank's buffer: many rounds of the smallest slots

  void open(std::vector<Setting> settings = {}) {
    settings.insert(settings.begin(), {{"TUTTI_CHANNELS", "2"}, {"TUTTI_ALGO", "ring"}, {"TUTTI_PROTOCOL", "simple"}});
    gpu_ = std::make_unique<GpuRanks>(kRanks, std::move(settings));
    for (int rank = 0; rank < kRanks; ++rank) streams_.push_back(std::make_unique<Stream>());
  }
  void finish() {
    for (const auto& one : streams_) EXPECT_EQ(cudaStreamSynchronize(*one), cudaSuccess);
    streams_.clear();
    gpu_.reset();
  }
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / fmt::format("tutti-record-{}-{}", test->name(), ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override {
    finish();
    removeRecordFolder(folder_);
  }

  cudaStream_t stream(int rank) const { return *streams_[static_cast<size_t>(rank)]; }
  std::byte* memory(int rank) { return memory_[static_cast<size_t>(rank)].data(); }
  void reduce(int rank, size_t bytes) {
    CHECK_TUTTI(tuttiAllReduce(memory(rank), memory(rank), bytes, tuttiInt8, tuttiSum, (*gpu_)[rank], stream(rank)));
  }

  Record dump(int rank) {
    const std::string path = folder_ / fmt::format("tutti-rank{}.json", rank);
    CHECK_TUTTI(tuttiCommDump((*gpu_)[rank], path.c_str()));
    return doctor::readRecord(path);
  }
  // The record of the rank, once `enough` says so of its last call; after 10 s as it is then.
  template <class Enough>
  Record dumpWhen(int rank, Enough enough) {
    for (int i = 0;; ++i) {
      Record record = dump(rank);
      if (i == 1000 || (!record.calls.empty() && enough(record.calls.back()))) return record;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  std::unique_ptr<GpuRanks> gpu_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::vector<std::byte>> memory_{kRanks, std::vector<std::byte>(kCount)};
  fs::path folder_;
};

bool waits(const Call& call) { return call.waitingFor.has_value(); }

TEST_F(DeviceRecorder, SaysHowFarACallIsAndWhomItWaitsFor) {
  open();
  for (int rank = 0; rank < kRanks; ++rank) reduce(rank, 100);
  reduce(0, kCount);
  reduce(1, kCount);
  const Call first = dumpWhen(0, waits).calls.back(), second = dumpWhen(1, waits).calls.back();
  for (const Call& call : {first, second}) {
    EXPECT_EQ(call.number, 1u);
    EXPECT_EQ(call.state, State::kRunning);
    EXPECT_GT(call.rounds, 1u);
    EXPECT_LT(call.roundsDone, call.rounds);
  }
  // In the ring 0 → 1 → 2 → 0, the first can go no further than its first wait for the last.
  EXPECT_EQ(first.waitingFor, 2);
  EXPECT_EQ(first.roundsDone, 0u);
  const Record before = dump(0);
  ASSERT_EQ(before.calls.size(), 2u);
  EXPECT_EQ(before.calls[0].state, State::kDone);
  EXPECT_EQ(before.calls[0].roundsDone, before.calls[0].rounds);
  reduce(2, kCount);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Call last = dumpWhen(rank, [](const Call& call) { return call.done(); }).calls.back();
    EXPECT_EQ(last.state, State::kDone);
    EXPECT_GT(last.rounds, 1u);
    EXPECT_EQ(last.roundsDone, last.rounds);
    EXPECT_FALSE(last.waitingFor);
    EXPECT_TRUE(last.endedNs);
  }
}

// By the one-shot algorithm the threads of a block wait for all other ranks at the same time, and the record names one.
TEST_F(DeviceRecorder, NamesAnotherRankWhenTheOneThatItNamedHasCome) {
  for (const ProtocolRow& protocol : kProtocolRows) {
    open({{"TUTTI_ALGO", "oneshot"}, {"TUTTI_PROTOCOL", std::string(protocol.name)}});
    reduce(0, 100);
    const int named = dumpWhen(0, waits).calls.back().waitingFor.value_or(-1);
    ASSERT_TRUE(named == 1 || named == 2) << named;
    reduce(named, 100);
    const int other = 3 - named;
    const Call call = dumpWhen(0, [&](const Call& one) { return one.waitingFor == other; }).calls.back();
    EXPECT_EQ(call.waitingFor, other) << protocol.name;
    reduce(other, 100);
    finish();
  }
}

// More calls behind the one that is stuck than have words of their own.
TEST_F(DeviceRecorder, TellsTheCallThatRunsFromThoseBeforeAndBehindIt) {
  constexpr size_t kBehind = 200, kLater = 10;
  open();
  reduce(0, kCount);
  for (size_t i = 0; i < kBehind; ++i) reduce(0, 16);
  const auto current = [&](size_t number) {
    Record record = dump(0);
    for (int i = 0; i < 1000 && !(number < record.calls.size() && waits(record.calls[number])); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      record = dump(0);
    }
    return record;
  };
  const Record before = current(0);
  ASSERT_EQ(before.calls.size(), kBehind + 1);
  EXPECT_EQ(before.calls[0].state, State::kRunning);
  EXPECT_EQ(before.calls[0].waitingFor, 2);
  for (size_t i = 1; i <= kBehind; ++i) ASSERT_EQ(before.calls[i].state, State::kQueued) << i;
  // The others come to the 100th; then there are words again for the calls that follow, and they come to one of those.
  for (int rank = 1; rank < kRanks; ++rank) {
    reduce(rank, kCount);
    for (size_t i = 1; i < 100; ++i) reduce(rank, 16);
  }
  EXPECT_EQ(current(100).calls[100].waitingFor, 2);
  for (size_t i = 0; i < kLater; ++i) reduce(0, 16);
  for (int rank = 1; rank < kRanks; ++rank)
    for (size_t i = 100; i < kBehind + kLater / 2; ++i) reduce(rank, 16);
  const Record after = current(kBehind + kLater / 2);
  for (size_t i = 0; i < kBehind + kLater / 2; ++i) ASSERT_EQ(after.calls[i].state, State::kDone) << i;
  EXPECT_EQ(after.calls[kBehind + kLater / 2].waitingFor, 2);
  EXPECT_EQ(after.calls.back().state, State::kQueued);
  for (int rank = 1; rank < kRanks; ++rank)
    for (size_t i = kBehind + kLater / 2; i <= kBehind + kLater; ++i) reduce(rank, 16);
}

TEST_F(DeviceRecorder, ACallThatGaveUpKeepsWhatItWaitedFor) {
  open({{"TUTTI_OPERATION_TIMEOUT_MS", "300"}});
  reduce(0, kCount);
  reduce(1, kCount);
  const Call call = dumpWhen(0, [](const Call& one) { return one.state == State::kFailed; }).calls.back();
  EXPECT_EQ(call.state, State::kFailed);
  EXPECT_EQ(call.waitingFor, 2);
  EXPECT_EQ(call.roundsDone, 0u);
  EXPECT_GT(call.rounds, 1u);
}

// Of memory that is not pinned a stream's copies would hold up the caller.
class StreamRecorder : public DeviceRecorder {
 protected:
  void SetUp() override {
    DeviceRecorder::SetUp();
    for (int rank = 0; rank < kRanks; ++rank)
      ASSERT_EQ(cudaHostRegister(memory(rank), kCount, cudaHostRegisterMapped), cudaSuccess);
  }
  void TearDown() override {
    finish();
    for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(cudaHostUnregister(memory(rank)), cudaSuccess);
    DeviceRecorder::TearDown();
  }
};

TEST_F(StreamRecorder, SaysWhichCallStandsAndWhomItWaitsFor) {
  open(settingsOf("stream"));
  for (int i = 0; i < 3; ++i) reduce(0, 100);
  for (int i = 0; i < 3; ++i) reduce(1, 100);
  reduce(2, 100);
  dumpWhen(0, [&](const Call&) { return waits(dump(0).calls.at(1)); });
  const Record before = dump(0);
  ASSERT_EQ(before.calls.size(), 3u);
  EXPECT_EQ(before.calls[0].state, State::kDone);
  EXPECT_EQ(before.calls[1].state, State::kRunning);
  EXPECT_EQ(before.calls[1].waitingFor, 2);
  EXPECT_EQ(before.calls[2].state, State::kQueued);
  for (int i = 0; i < 2; ++i) reduce(2, 100);
  for (int rank = 0; rank < kRanks; ++rank)
    for (const Call& call : dumpWhen(rank, [](const Call& one) { return one.done(); }).calls) {
      EXPECT_EQ(call.state, State::kDone);
      EXPECT_FALSE(call.waitingFor);
    }
}

TEST_F(StreamRecorder, ACallThatGaveUpKeepsWhatItWaitedFor) {
  open(settingsOf("stream") + std::vector<Setting>{{"TUTTI_OPERATION_TIMEOUT_MS", "300"}});
  reduce(0, 100);  // alone: two that go on with nothing meddle with each other's slots
  const Call call = dumpWhen(0, [](const Call& one) { return one.state == State::kFailed; }).calls.back();
  EXPECT_EQ(call.state, State::kFailed);
  EXPECT_EQ(call.waitingFor, 2);
}

TEST_F(DeviceRecorder, NumbersMessagesByTheirPeer) {
  open();
  for (int rank = 0; rank < kRanks; ++rank) reduce(rank, 100);
  for (int i = 0; i < 2; ++i) CHECK_TUTTI(tuttiSend(memory(0), 10, tuttiInt8, 1, (*gpu_)[0], stream(0)));
  CHECK_TUTTI(tuttiRecv(memory(1), 10, tuttiInt8, 0, (*gpu_)[1], stream(1)));
  const Record sender = dump(0), receiver = dump(1);
  ASSERT_EQ(sender.calls.size(), 3u);
  ASSERT_EQ(receiver.calls.size(), 2u);
  EXPECT_EQ(sender.calls[1].number, 0u);
  EXPECT_EQ(sender.calls[2].number, 1u);
  EXPECT_EQ(receiver.calls[1].number, 0u);
  CHECK_TUTTI(tuttiRecv(memory(1), 10, tuttiInt8, 0, (*gpu_)[1], stream(1)));
}

// All calls of a group are prepared before the first of them goes out.
TEST_F(DeviceRecorder, TellsTheAlgorithmOfEachCallOfAGroup) {
  open();
  constexpr size_t kPart = 10;
  std::vector<std::byte> from(kRanks * kPart), to(kRanks * kRanks * kPart), message(kPart), received(kPart);
  inGroup([&] {
    for (int rank = 0; rank < kRanks; ++rank) {
      std::byte* const own = to.data() + static_cast<size_t>(rank) * kRanks * kPart;
      reduce(rank, 100);
      CHECK_TUTTI(tuttiAllToAll(from.data(), own, kPart, tuttiInt8, (*gpu_)[rank], stream(rank)));
      reduce(rank, 100);
    }
    CHECK_TUTTI(tuttiSend(message.data(), kPart, tuttiInt8, 1, (*gpu_)[0], stream(0)));
    CHECK_TUTTI(tuttiRecv(received.data(), kPart, tuttiInt8, 0, (*gpu_)[1], stream(1)));
  });
  for (int rank = 0; rank < kRanks; ++rank) gpu_->finish(stream(rank));
  for (int rank = 0; rank < kRanks; ++rank) {
    const Record record = dump(rank);
    EXPECT_EQ(record.calls.size(), rank < 2 ? 4u : 3u);
    for (const Call& call : record.calls)
      EXPECT_EQ(call.algorithm, call.kind == Collective::kAllReduce ? "ring" : "direct") << nameOf(call.kind);
  }
  tuttiCommStats_t stats{};
  stats.size = sizeof stats;
  CHECK_TUTTI(tuttiCommGetStats((*gpu_)[0], &stats));
  EXPECT_STREQ(stats.lastAlgorithm, "ring");
}

TEST_F(DeviceRecorder, TheDoctorNamesTheRankThatIsMissing) {
  open({{"TUTTI_OPERATION_TIMEOUT_MS", "300"}});
  for (int rank = 0; rank < kRanks; ++rank) reduce(rank, 100);
  reduce(0, kCount);
  reduce(1, kCount);
  std::vector<Record> records;
  for (int rank = 0; rank < 2; ++rank)
    records.push_back(dumpWhen(rank, [](const Call& call) { return call.state == State::kFailed; }));
  records.push_back(dump(2));
  const doctor::Finding first = doctor::diagnose(doctor::groupRecords(records).at(0)).findings.front();
  EXPECT_EQ(first.kind, doctor::FindingKind::kNotCome) << first.text;
  EXPECT_EQ(first.blamed, std::vector<int>{2}) << first.text;
  // The same when the missing one left nothing.
  records.pop_back();
  const doctor::Finding without = doctor::diagnose(doctor::groupRecords(records).at(0)).findings.front();
  EXPECT_EQ(without.blamed, std::vector<int>{2}) << without.text;
}

}  // namespace
}  // namespace tutti::test
