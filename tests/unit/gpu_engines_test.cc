// Which engine runs what: decided from what all ranks know, and told.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "gpu/engines.h"
#include "gpu/layout.h"
#include "team/config.h"

namespace tutti::gpu {
namespace {

using topology::PeerInfo;

// Ranks on one GPU, one in each of `processes`.
std::vector<PeerInfo> cardsOf(std::vector<uint64_t> processes, comm::EngineWish wish = comm::EngineWish::kAuto) {
  std::vector<PeerInfo> infos;
  for (const uint64_t process : processes) {
    PeerInfo info;
    info.device = 0;
    info.gpu = 7;
    info.gpuBlocks = 100;
    info.gpuQueues = 8;
    info.processToken = process;
    info.pid = static_cast<int32_t>(1000 + process);
    info.gpuEngine = static_cast<uint8_t>(wish);
    infos.push_back(info);
  }
  return infos;
}

void expectEngines(const std::vector<PeerInfo>& infos, bool kernels, bool streams, const char* words = "") {
  const DeviceEngines engines = enginesFor(infos);
  EXPECT_EQ(engines.kernels, kernels);
  EXPECT_EQ(engines.streams, streams);
  EXPECT_NE(engines.why.find(words), std::string::npos) << engines.why;
}

void expectRefusal(const std::vector<PeerInfo>& infos, std::initializer_list<const char*> words) {
  try {
    enginesFor(infos);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidUsage);
    for (const char* word : words) EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(EngineChoice, KernelsRunInOneProcessUnlessStreamsAreAskedFor) {
  expectEngines(cardsOf({1, 1, 1}), true, false);
  expectEngines(cardsOf({1, 1, 1}, comm::EngineWish::kKernel), true, false);
  expectEngines(cardsOf({1, 1, 1}, comm::EngineWish::kCopy), true, true, "TUTTI_ENGINE=copy");
  expectEngines(cardsOf({1, 1, 1}, comm::EngineWish::kStream), false, true, "TUTTI_ENGINE=stream");
}

TEST(EngineChoice, StreamsWaitForRanksOfOtherProcessesOnTheGpu) {
  expectEngines(cardsOf({1, 2}), false, true, "ranks 0 and 1 share a GPU from different processes (pid 1001 and 1002)");
  expectEngines(cardsOf({1, 1, 2, 2}, comm::EngineWish::kCopy), false, true, "ranks 0 and 2");
}

TEST(EngineChoice, WhatCouldHangIsRefused) {
  expectRefusal(cardsOf({1, 2}, comm::EngineWish::kKernel), {"ranks 0 and 1", "TUTTI_ENGINE=kernel", "one process"});
  auto without = cardsOf({1, 2});
  without[1].gpuQueues = 0;
  expectRefusal(without, {"ranks 0 and 1", "GPU of rank 1", "can not wait"});
  auto apart = cardsOf({1, 2, 3});
  apart[2].hostId = 5;
  apart[2].gpu = 8;
  expectRefusal(apart, {"rank 2 is on another host"});
  expectRefusal(cardsOf({1, 1, 1, 1, 1, 1, 1, 2}), {"7 or more ranks", "CUDA_DEVICE_MAX_CONNECTIONS"});
}

TEST(EngineChoice, KernelsStandInWhereStreamsCanNot) {
  auto mixed = cardsOf({1, 1}, comm::EngineWish::kCopy);
  mixed[1].gpuEngine = static_cast<uint8_t>(comm::EngineWish::kAuto);
  expectEngines(mixed, true, false, "not the same on every rank");
  auto without = cardsOf({1, 1}, comm::EngineWish::kStream);
  without[0].gpuQueues = 0;
  expectEngines(without, true, false, "GPU of rank 0 can not wait");
  expectEngines(cardsOf(std::vector<uint64_t>(7, 1), comm::EngineWish::kCopy), true, false, "hardware queues");
  expectEngines(cardsOf(std::vector<uint64_t>(6, 1), comm::EngineWish::kCopy), true, true);
}

TEST(EngineChoice, TheSlotsOfBothEnginesFitIntoTheBudget) {
  constexpr size_t kBudget = 64 << 20;
  for (const comm::EngineWish wish : {comm::EngineWish::kAuto, comm::EngineWish::kCopy, comm::EngineWish::kStream}) {
    const auto infos = cardsOf(std::vector<uint64_t>(6, 1), wish);
    const GpuLayout shape = layoutOf(infos, 4, kBudget);
    const size_t ofStreams = size_t{shape.streamSlotBytes} * GpuLayout::kStreamDepth * infos.size();
    const size_t ofKernels =
        size_t{shape.slotBytes[Protocol::kSimple]} * shape.depth * shape.allChannels() * infos.size();
    EXPECT_LE(ofStreams + ofKernels, kBudget);
    EXPECT_EQ(ofStreams > 0, wish != comm::EngineWish::kAuto);
    EXPECT_EQ(ofKernels > 0, wish != comm::EngineWish::kStream);
    EXPECT_LE(ofStreams, PoolLayout(shape).bytes());
  }
}

// As many as the operation that has most; all that there are, where one has as many as pay.
TEST(EngineChoice, ChannelsAreLaidOutForTheOperationThatHasMost) {
  const auto infos = cardsOf({1, 1});  // 50 blocks for each
  const auto expect = [&](const char* rules, uint32_t channels, uint32_t ofMessages) {
    const GpuLayout shape = layoutOf(infos, schedule::parseChannels(rules), 64 << 20);
    EXPECT_EQ(shape.channels, channels) << rules;
    EXPECT_EQ(shape.messageChannels, ofMessages) << rules;
  };
  expect("0", 32, 4);
  expect("3", 3, 3);
  expect("2;all_reduce:8", 8, 2);
  expect("all_reduce:8", 32, 4);
  expect("2;broadcast:0", 32, 2);
  expect("1;sendrecv:3", 1, 3);
  expect("64", 32, 4);
}

}  // namespace
}  // namespace tutti::gpu
