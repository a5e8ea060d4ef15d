// Memory of a GPU in the hands of another rank: of this process, and of another.
#include "device/memory_record.h"
#include "device_fixture.h"
#include "emulation/handed_over.h"
#include "emulation/other_process.h"

namespace tutti::device::test {
namespace {

// A block of the driver for itself: of a smaller one the driver keeps the rest, and with it what was shared.
constexpr size_t kSharedBytes = 4 << 20;
constexpr uint64_t kOfMaker = 17, kOfTaker = 18;

using DeviceIpcTest = OnGpu;
using emulation::handedOver;

// This program again, running only the test `name`, which finds `exported` handed over. Returns its status.
int runInAnotherProcess(const std::string& name, const Bytes& exported) {
  return emulation::statusOfOtherProcess("OtherProcess.DISABLED_" + name, {emulation::handing(exported)});
}

TEST(OtherProcess, DISABLED_MapsAndAnswers) {
  const Bytes exported = handedOver();
  if (exported.empty()) GTEST_SKIP() << "runs only as a process of another test";
  const auto device = openDevice(0);
  const auto memory = device->importMemory(exported, false);
  ASSERT_EQ(memory->bytes, kSharedBytes);
  ASSERT_TRUE(device->checkPattern(memory->data, kSharedBytes, kOfMaker));
  device->writePattern(memory->data, kSharedBytes, kOfTaker);
  // A second mapping shows the same bytes, and outlives the first.
  const auto again = device->importMemory(exported, false);
  ASSERT_TRUE(device->checkPattern(again->data, kSharedBytes, kOfTaker));
}

TEST(OtherProcess, DISABLED_FindsNothing) {
  const Bytes exported = handedOver();
  if (exported.empty()) GTEST_SKIP() << "runs only as a process of another test";
  const auto device = openDevice(0);
  expectSays(thrownBy([&] { device->importMemory(exported, false); }), ErrorCode::kCuda,
             {"GPU 0", "4194304 bytes", "process"});
}

// Whatever a changed byte stands for, the answer is an error, or memory that is there to its end.
TEST(OtherProcess, DISABLED_LooksAtDamagedRecords) {
  const Bytes exported = handedOver();
  if (exported.empty()) GTEST_SKIP() << "runs only as a process of another test";
  const auto device = openDevice(0);
  int refused = 0;
  const size_t ours = exported.size() - sizeof(cudaIpcMemHandle_t);  // what is in the handle is CUDA's to check
  for (size_t at = 0; at < ours; ++at) {
    Bytes damaged = exported;
    damaged[at] ^= std::byte{0x41};
    try {
      const auto memory = device->importMemory(damaged, false);
      device->checkPattern(memory->data, memory->bytes, 0);
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(error.code() == ErrorCode::kRemote || error.code() == ErrorCode::kCuda) << at << ": " << error.what();
    }
  }
  EXPECT_GE(refused, 16) << "the length and the offset are 8 bytes each";
}

TEST_F(DeviceIpcTest, AnotherProcessReadsAndWritesIt) {
  const auto before = device_->allocate(1000);  // so that the memory need not be the first of an allocation
  const auto memory = device_->allocate(kSharedBytes);
  device_->writePattern(memory->data, kSharedBytes, kOfMaker);
  ASSERT_EQ(runInAnotherProcess("MapsAndAnswers", device_->exportMemory(*memory)), 0);
  EXPECT_TRUE(device_->checkPattern(memory->data, kSharedBytes, kOfTaker));
  EXPECT_EQ(read(before->data, 1000), std::vector<std::byte>(1000));
}

TEST_F(DeviceIpcTest, AnotherProcessIsToldThatItIsGone) {
  auto memory = device_->allocate(kSharedBytes);
  const Bytes exported = device_->exportMemory(*memory);
  memory.reset();
  EXPECT_EQ(runInAnotherProcess("FindsNothing", exported), 0);
}

TEST_F(DeviceIpcTest, AnotherProcessRefusesADamagedRecord) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer keeps its notes of every mapping, and here are many";
#endif
  const auto memory = device_->allocate(kSharedBytes);
  EXPECT_EQ(runInAnotherProcess("LooksAtDamagedRecords", device_->exportMemory(*memory)), 0);
}

TEST_F(DeviceIpcTest, WithinTheProcessItIsTheSameMemory) {
  auto memory = device_->allocate(kSharedBytes);
  device_->writePattern(memory->data, kSharedBytes, 4);
  const auto taken = device_->importMemory(device_->exportMemory(*memory), true);
  EXPECT_EQ(taken->data, memory->data);
  EXPECT_EQ(taken->bytes, kSharedBytes);
  memory.reset();
  EXPECT_TRUE(device_->checkPattern(taken->data, kSharedBytes, 4)) << "the taker owns it too";
}

TEST_F(DeviceIpcTest, WithinTheProcessItSaysThatTheMakerGaveUp) {
  auto memory = device_->allocate(kSharedBytes);
  const Bytes exported = device_->exportMemory(*memory);
  memory.reset();
  expectSays(thrownBy([&] { device_->importMemory(exported, true); }), ErrorCode::kRemote, {"given up"});
}

// Who is of another process may have seen any record of this one.
TEST_F(DeviceIpcTest, ARecordFromAnotherProcessLeadsToNothingOfThisOne) {
  const auto memory = device_->allocateForUsers(kSharedBytes);
  const Bytes exported = device_->exportMemory(*memory);
  EXPECT_EQ(device_->importMemory(exported, true)->data, memory->data);
  expectSays(thrownBy([&] { device_->importMemory(exported, false); }), ErrorCode::kCuda, {"for that process alone"});
}

TEST_F(DeviceIpcTest, TicketsCanNotBeGuessed) {
  const auto ticketOf = [&](const DeviceMemory& memory) {
    return MemoryRecord::read(device_->exportMemory(memory)).ticket;
  };
  const auto one = device_->allocate(kSharedBytes), next = device_->allocate(kSharedBytes);
  EXPECT_EQ(ticketOf(*one), ticketOf(*one));
  constexpr uint64_t kNear = 1 << 20;
  EXPECT_GT(ticketOf(*next) - ticketOf(*one) + kNear, 2 * kNear);
}

TEST_F(DeviceIpcTest, OnlyMemoryOfTheGpuIsExported) {
  const auto pinned = device_->allocatePinned(100);
  expectSays(thrownBy([&] { device_->exportMemory(*pinned); }), ErrorCode::kInternal, {"GPU"});
}

TEST_F(DeviceIpcTest, ARecordThatEndsEarlyIsRefused) {
  const auto memory = device_->allocate(kSharedBytes);
  const Bytes exported = device_->exportMemory(*memory);
  for (size_t length = 0; length < exported.size(); ++length) {
    const std::span cut(exported.data(), length);
    EXPECT_EQ(thrownBy([&] { device_->importMemory(cut, true); }).code, ErrorCode::kRemote) << length;
  }
  Bytes longer = exported;
  longer.push_back(std::byte{0});
  expectSays(thrownBy([&] { device_->importMemory(longer, true); }), ErrorCode::kRemote, {"behind its end"});
}

// Whatever a changed byte stands for, the answer is an error or the very memory: never another address.
TEST_F(DeviceIpcTest, NoChangedByteLeadsElsewhere) {
  const auto memory = device_->allocate(kSharedBytes);
  const Bytes exported = device_->exportMemory(*memory);
  for (size_t at = 0; at < exported.size(); ++at) {
    Bytes changed = exported;
    changed[at] ^= std::byte{0x5a};
    try {
      const auto taken = device_->importMemory(changed, true);
      EXPECT_EQ(taken->bytes, kSharedBytes) << at;
      EXPECT_TRUE(device_->checkPattern(taken->data, 0, 0));
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kRemote || error.code() == ErrorCode::kCuda) << at << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace tutti::device::test
