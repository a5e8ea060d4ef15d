// Links to other hosts whose slots lie in the GPUs' memory (GPUDirect), and what is used where that cannot be had.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "device/device.h"
#include "device/network_slots.h"
#include "emulation/control.h"
#include "emulation/far_ranks.h"
#include "link/registry.h"
#include "topology/peer_info.h"

namespace tutti::test {
namespace {

std::vector<Setting> overFerry(const std::string& trouble = "") {
  const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/libtutti_ferry.so";
  return {{"TUTTI_TRANSPORT_PLUGINS", file.string()}, {"FERRY", trouble}};
}

class GpuDirectLinks : public testing::Test {
 protected:
  ~GpuDirectLinks() override { emulation::setGpuDirect(emulation::GpuDirect::kFlushed); }
};

TEST_F(GpuDirectLinks, CarryEveryCollective) {
  const uint64_t before = emulation::flushes();
  const FarRanks ranks(4, overFerry());
  EXPECT_EQ(ranks.transports(), "p2p,ferry+gpu");
  EXPECT_EQ(runAll(ranks, {3, 40'001}), "");
  EXPECT_GT(emulation::flushes(), before);
}

TEST_F(GpuDirectLinks, NeedNoFlushWhereTheGpuSeesWritesInOrder) {
  emulation::setGpuDirect(emulation::GpuDirect::kInOrder);
  const uint64_t before = emulation::flushes();
  const FarRanks ranks(4, overFerry("flush"));
  EXPECT_EQ(ranks.transports(), "p2p,ferry+gpu");
  EXPECT_EQ(runAll(ranks, {1000}), "");
  EXPECT_EQ(emulation::flushes(), before);
}

TEST_F(GpuDirectLinks, GoThroughTheHostWhereTheyCannotBeHad) {
  for (const char* const trouble : {"lack", "refuse", "flush"}) {
    const FarRanks ranks(4, overFerry(trouble));
    EXPECT_EQ(ranks.transports(), "p2p,ferry") << trouble;
    EXPECT_EQ(runAll(ranks, {1000}), "") << trouble;
  }
  emulation::setGpuDirect(emulation::GpuDirect::kNone);
  EXPECT_EQ(FarRanks(4, overFerry()).transports(), "p2p,ferry");
}

// Real queue pairs, whose device takes the emulated GPU's memory by its address (tests/vm/vm_test.py runs it).
TEST_F(GpuDirectLinks, GoOverRdma) {
  const auto lacks = link::builtinTransports("").lacks(topology::describeSelf());
  if (const auto verbs = lacks.find("verbs"); verbs != lacks.end()) GTEST_SKIP() << verbs->second;
  const uint64_t before = emulation::flushes();
  {
    const FarRanks ranks(4, {{"TUTTI_TRANSPORT", "verbs"}});
    EXPECT_EQ(ranks.transports(), "p2p,verbs+gpu");
    EXPECT_EQ(runAll(ranks, {3, 20'001}), "");
  }
  EXPECT_GT(emulation::flushes(), before);
  EXPECT_EQ(FarRanks(4, {{"TUTTI_TRANSPORT", "^verbs+gpu,tcp"}}).transports(), "p2p,verbs");
}

// Who names a transport means it with its slots anywhere; who means the one way, names that.
TEST_F(GpuDirectLinks, AreChosenByName) {
  const auto by = [](const char* list) {
    return FarRanks(4, overFerry() + std::vector<Setting>{{"TUTTI_TRANSPORT", list}}).transports();
  };
  EXPECT_EQ(by("ferry"), "p2p,ferry+gpu");
  EXPECT_EQ(by("ferry+gpu"), "p2p,ferry+gpu");
  EXPECT_EQ(by("^ferry+gpu"), "p2p,ferry");
  EXPECT_EQ(by("^ferry"), "p2p,tcp");
}

TEST_F(GpuDirectLinks, SayWhatTheGpuLacks) {
  const auto device = device::openDevice(0);
  EXPECT_EQ(device->lackForNetwork(), "");
  emulation::setGpuDirect(emulation::GpuDirect::kNone);
  EXPECT_NE(device->lackForNetwork().find("GPU 0 lets no network device at its memory"), std::string::npos);
  emulation::setGpuDirect(emulation::GpuDirect::kJoined);
  EXPECT_NE(device->lackForNetwork().find("come in no known order"), std::string::npos);
}

// A thread without a context, while another one captures a graph in a way that forbids it much.
TEST_F(GpuDirectLinks, AreMadeAndFlushedBesideACapture) {
  const auto device = device::openDevice(0);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::thread([&] { EXPECT_TRUE(device->allocateForNetwork(1000)->flush()); }).join();
  EXPECT_TRUE(device->allocateForNetwork(1000)->flush());
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// Freeing would wait for all kernels: what one link has had is the next one's.
TEST_F(GpuDirectLinks, KeepTheMemoryOfThoseThatAreGone) {
  const auto source = device::slotSourceOf(0);
  auto one = source->make(100'000);
  const std::byte* const first = one->data();
  one.reset();
  EXPECT_NE(source->make(200'000)->data(), first);
  EXPECT_EQ(source->make(50'000)->data(), first);
}

TEST_F(GpuDirectLinks, HaveMemoryOfWholePages) {
  const auto device = device::openDevice(0);
  const auto slots = device->allocateForNetwork(100'000);
  EXPECT_GE(slots->bytes(), 100'000u);
  EXPECT_EQ(slots->bytes() % 65536, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(slots->data()) % 65536, 0u);
  EXPECT_GE(slots->dmabuf(), 0);
  EXPECT_TRUE(slots->needsFlush());
  const std::array<char, 6> said{"slots"};
  std::array<char, 6> read{};
  slots->write(slots->data() + slots->bytes() - said.size(), said.data(), said.size());
  slots->read(read.data(), slots->data() + slots->bytes() - said.size(), said.size());
  EXPECT_EQ(said, read);
}

}  // namespace
}  // namespace tutti::test
