// A link over the RDMA ports of this machine, to itself: real queue pairs. tests/vm/vm_test.py runs it where there are
// some.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "link/fifo.h"
#include "transports/verbs/connection.h"

namespace tutti::verbs {
namespace {

constexpr uint32_t kDeviceSlotBytes = 64 << 10, kDeviceDepth = 8;

struct Line {
  std::deque<std::vector<std::byte>> mine;
  Line* other = nullptr;
  std::function<void(std::vector<std::byte>&)> change;  // what goes to the other end
  tuttiTransportLine table() {
    return {this,
            [](void* line, const void* blob, size_t bytes) {
              const auto* const from = static_cast<const std::byte*>(blob);
              std::vector<std::byte> said(from, from + bytes);
              if (static_cast<Line*>(line)->change) static_cast<Line*>(line)->change(said);
              static_cast<Line*>(line)->other->mine.push_back(std::move(said));
            },
            [](void* line, void* blob, size_t room) -> int64_t {
              auto& came = static_cast<Line*>(line)->mine;
              if (came.empty()) return -1;
              const auto next = std::move(came.front());
              came.pop_front();
              std::memcpy(blob, next.data(), std::min(room, next.size()));
              return static_cast<int64_t>(next.size());
            }};
  }
};

// One end: its memory, with the FIFO from end 0 first, and its connection.
struct End {
  explicit End(int rank) : rank_(rank) {
    std::memset(memory, 0, bytes);
    for (int from = 0; from < 2; ++from) {
      const auto fifo = link::Fifo::over(memory + static_cast<size_t>(from) * one, kDeviceSlotBytes, kDeviceDepth);
      (from == rank ? send : recv) = {
          reinterpret_cast<unsigned char*>(fifo.slots), reinterpret_cast<tuttiSlotHeader*>(fifo.headers),
          reinterpret_cast<uint64_t*>(&fifo.released->value), kDeviceSlotBytes, kDeviceDepth};
    }
  }
  ~End() {
    connection.reset();
    if (gpu.dmabuf >= 0) ::close(gpu.dmabuf);
    std::free(memory);
  }
  // As if they were in a GPU whose memory the device knows by its address alone.
  void moveSlots() {
    const size_t eachWay = size_t{kDeviceSlotBytes} * kDeviceDepth;
    gpu.begin = aside.data();
    gpu.bytes = aside.size();
    gpu.dmabuf = ::memfd_create("no-dmabuf", MFD_CLOEXEC);
    gpu.with = this;
    gpu.flush = [](void* end) noexcept { return ++static_cast<End*>(end)->flushes, 0; };
    send.slots = aside.data() + (rank_ == 0 ? 0 : eachWay);
    recv.slots = aside.data() + (rank_ == 0 ? eachWay : 0);
  }
  void open(const tuttiTransportHost& host) {
    const tuttiTransportRank self{rank_, 1, 1, 1, -1, -1, "here"}, peer{1 - rank_, 1, 1, 1, -1, -1, "here"};
    const tuttiTransportEdge edge{self, peer, 0, send, recv, memory, bytes, nullptr, gpu};
    connection = std::make_unique<Connection>(edge, line.table(), LinkSettings{}, host);
  }
  void post(uint64_t slot, uint32_t length) const {
    tuttiSlotHeader& header = send.headers[slot % kDeviceDepth];
    header.bytes = length;
    unsigned char* const to =
        length <= TUTTI_INLINE_BYTES ? header.inlined : send.slots + slot % kDeviceDepth * size_t{kDeviceSlotBytes};
    for (uint32_t i = 0; i < length; ++i) to[i] = static_cast<unsigned char>(slot * 31 + i * 7);
    std::atomic_ref(header.sequence).store(slot + 1, std::memory_order_release);
  }
  bool arrived(uint64_t slot) const {
    return std::atomic_ref(recv.headers[slot % kDeviceDepth].sequence).load(std::memory_order_acquire) == slot + 1;
  }
  bool holds(uint64_t slot, uint32_t length) const {
    const tuttiSlotHeader& header = recv.headers[slot % kDeviceDepth];
    const unsigned char* const at =
        length <= TUTTI_INLINE_BYTES ? header.inlined : recv.slots + slot % kDeviceDepth * size_t{kDeviceSlotBytes};
    bool same = header.bytes == length;
    for (uint32_t i = 0; same && i < length; ++i) same = at[i] == static_cast<unsigned char>(slot * 31 + i * 7);
    return same;
  }

  int rank_;
  size_t one = (link::Fifo::bytesFor(kDeviceSlotBytes, kDeviceDepth) + 127) / 128 * 128, bytes = 2 * one;
  std::byte* memory = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  tuttiFifo send{}, recv{};
  std::vector<unsigned char> aside = std::vector<unsigned char>(2 * size_t{kDeviceSlotBytes} * kDeviceDepth);
  tuttiTransportGpuSlots gpu{nullptr, 0, -1, 0, nullptr, nullptr};
  int flushes = 0;
  Line line;
  std::unique_ptr<Connection> connection;
};

class DeviceLink : public testing::Test {
 protected:
  void SetUp() override {
    const auto ports = portsHere();
    if (portsOf(ports, "", -1, 0, 1).empty()) GTEST_SKIP() << whyNone(ports, "");
    ends[0].line.other = &ends[1].line;
    ends[1].line.other = &ends[0].line;
  }
  void connectOn(const tuttiTransportHost& host) {
    for (End& end : ends) end.open(host);
    for (int ready = 0; ready != 3;) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      for (int end = 0; end < 2; ++end) {
        const Progress progress = (ready >> end & 1) != 0 ? Progress::kAdvanced : ends[end].connection->connect();
        ASSERT_NE(progress, Progress::kFailed) << ends[end].connection->error();
        if (progress == Progress::kAdvanced) ready |= 1 << end;
      }
    }
  }
  void carryAll();
  End ends[2] = {End(0), End(1)};
  const std::chrono::steady_clock::time_point until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
};

constexpr tuttiTransportHost kLoudHost{TUTTI_TRANSPORT_ABI, [](int, const char* text) { ADD_FAILURE() << text; }};
constexpr tuttiTransportHost kQuietHost{TUTTI_TRANSPORT_ABI, [](int, const char*) {}};

void DeviceLink::carryAll() {
  ASSERT_NO_FATAL_FAILURE(connectOn(kLoudHost));
  const uint32_t lengths[] = {0, 8, TUTTI_INLINE_BYTES, TUTTI_INLINE_BYTES + 1, 1000, 40'000, kDeviceSlotBytes};
  constexpr uint64_t kSlots = 300;
  uint64_t posted[2] = {}, taken[2] = {};
  while (taken[0] < kSlots || taken[1] < kSlots) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
    for (size_t end = 0; end < 2; ++end) {
      const uint64_t free = std::atomic_ref(*ends[end].send.released).load(std::memory_order_acquire);
      if (posted[end] < kSlots && posted[end] - free < kDeviceDepth) {
        ends[end].post(posted[end], lengths[posted[end] % std::size(lengths)]);
        ++posted[end];
      }
      ASSERT_NE(ends[end].connection->progress(), Progress::kFailed) << ends[end].connection->error();
      if (taken[end] < kSlots && ends[end].arrived(taken[end])) {
        ASSERT_TRUE(ends[end].holds(taken[end], lengths[taken[end] % std::size(lengths)])) << "slot " << taken[end];
        std::atomic_ref(*ends[end].recv.released).store(++taken[end], std::memory_order_release);
      }
    }
  }
}

TEST_F(DeviceLink, CarriesSlotsOfEveryKind) { carryAll(); }

TEST_F(DeviceLink, CarriesSlotsOfGpus) {
  for (End& end : ends) end.moveSlots();
  ASSERT_NO_FATAL_FAILURE(carryAll());
  for (const End& end : ends) EXPECT_GT(end.flushes, 0);
}

TEST_F(DeviceLink, SaysThatSlotsAreOfAGpuAtOneEndAlone) {
  ends[1].moveSlots();
  for (End& end : ends) end.open(kQuietHost);
  Progress progress = Progress::kIdle;
  while (progress == Progress::kIdle && std::chrono::steady_clock::now() < until)
    progress = ends[0].connection->connect();
  ASSERT_EQ(progress, Progress::kFailed);
  EXPECT_EQ(ends[0].connection->error(), "slots lie in a GPU at one end alone");
}

// What the peer's device does not allow is an error that says so, at the end that tried, and nothing is written.
TEST_F(DeviceLink, SaysThatAKeyIsWrong) {
  const size_t keyAt = 24 + offsetof(QueueAddress, key);  // behind a greeting's head
  ends[1].line.change = [&](std::vector<std::byte>& said) {
    if (said.size() > keyAt) said[keyAt] ^= std::byte{0x55};
  };
  ASSERT_NO_FATAL_FAILURE(connectOn(kQuietHost));
  ends[0].post(0, 1000);
  Progress progress = Progress::kIdle;
  while (progress != Progress::kFailed && std::chrono::steady_clock::now() < until) {
    progress = ends[0].connection->progress();
    ends[1].connection->progress();
  }
  ASSERT_EQ(progress, Progress::kFailed);
  const std::string error = ends[0].connection->error();
  EXPECT_NE(error.find("the RDMA link to rank 1 (host here, pid 1) failed"), std::string::npos) << error;
  EXPECT_NE(error.find("does not allow this memory to be written to"), std::string::npos) << error;
  EXPECT_FALSE(ends[1].arrived(0));
}

}  // namespace
}  // namespace tutti::verbs
