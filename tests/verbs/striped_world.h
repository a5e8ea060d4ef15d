// Two ends of a striped link over fake devices, and what uses them, in an order that a seed draws.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "link/fifo.h"
#include "transports/verbs/striped_link.h"
#include "verbs/fake_network.h"

namespace tutti::verbs {

using std::chrono::milliseconds;

inline constexpr uint32_t kSlotBytes = 40'000;

static_assert(sizeof(tuttiSlotHeader) == sizeof(link::SlotHeader));

struct Options {
  size_t paths = 2;
  uint32_t depth = 8;
  uint64_t slots = 1000;  // each way
  double breaks = 0;      // of steps
  FakeFaults faults{};
  // Payloads in buffers of the users', each link over two devices with such caches.
  bool lends = false;
  size_t cacheBytes = 0, deviceBytes = SIZE_MAX;
  double failedCalls = 0;  // of turns of a call
  bool onGpu = false;      // slots
};

// The memory of one end: both FIFOs, the one from end 0 first.
class Memory {
 public:
  explicit Memory(uint32_t depth, bool onGpu = false)
      : depth_(depth), one_(link::Fifo::bytesFor(kSlotBytes, depth) / 128 * 128 + 128), bytes_(2 * one_) {
    if (onGpu) gpu_ = std::make_unique<FakeGpu>(2 * size_t{depth} * kSlotBytes);
    data_ = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes_ + 4095) / 4096 * 4096));
    std::memset(data_, 0, bytes_);
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  FakeGpu* gpu() const { return gpu_.get(); }  // null: slots are in the memory
  tuttiFifo fifo(size_t from) const {
    std::byte* const base = data_ + from * one_;
    auto* const headers = reinterpret_cast<tuttiSlotHeader*>(base + sizeof(link::Counter));
    auto* slots = reinterpret_cast<unsigned char*>(headers + depth_);
    if (gpu_) slots = reinterpret_cast<unsigned char*>(gpu_->data()) + from * depth_ * kSlotBytes;
    return {slots, headers, reinterpret_cast<uint64_t*>(base), kSlotBytes, depth_};
  }

 private:
  uint32_t depth_;
  size_t one_, bytes_;
  std::byte* data_;
  std::unique_ptr<FakeGpu> gpu_;
};

// What slot `number` of one end holds: every byte differs from its neighbours, and from those of other slots.
inline std::byte byteOf(uint64_t number, size_t end, size_t at) {
  const uint64_t word = (number * 2 + end + 1) * 0x9e3779b97f4a7c15u + at * 0xc2b2ae3d27d4eb4fu;
  return static_cast<std::byte>(word >> 56);
}

// The calls of one end, one after the other: each has one of a few buffers, in which its payloads lie where its link
// can hold that. What a buffer held is something else at once when its call is over.
class Caller {
 public:
  static constexpr size_t kBuffers = 6;

  Caller(const tuttiFifo& send, std::mt19937_64& random) : send_(send), random_(random) {
    for (auto& buffer : buffers_) buffer.bytes.resize(size_t{send.depth} * kSlotBytes), buffer.number = ++last_;
  }
  // Where the payload of the next slot is to be; null: in the slot.
  std::byte* placeOf(uint64_t slot) {
    return holds_ ? now_->bytes.data() + slot % send_.depth * size_t{kSlotBytes} : nullptr;
  }
  bool isEnding() const { return ending_; }

  // Something of a call, if there is something to do.
  void turn(StripedLink& link, const std::vector<std::shared_ptr<FakeDevice>>& devices, uint64_t posted,
            const Options& options, TimePoint now) {
    if (now_ == nullptr) return begin(link, options.cacheBytes);
    if (happens(0.01)) return forget(devices);
    if (happens(options.failedCalls)) return fail(link, posted, now);
    ending_ = ending_ || happens(0.05);
    if (ending_ && *send_.released == posted) end(link);
  }
  uint64_t held() const { return held_; }
  uint64_t refused() const { return refused_; }
  uint64_t failed() const { return failed_; }

 private:
  struct Buffer {
    std::vector<std::byte> bytes;
    uint64_t number = 0;
    tuttiTransportMemory memory() const { return {bytes.data(), bytes.size(), number}; }
  };
  bool happens(double part) { return std::uniform_real_distribution<>(0, 1)(random_) < part; }
  void begin(StripedLink& link, size_t most) {
    now_ = &buffers_[std::uniform_int_distribution<size_t>(0, kBuffers - 1)(random_)];
    memory_ = now_->memory();
    std::string why;
    holds_ = link.hold(memory_, most, why);
    ++(holds_ ? held_ : refused_);
  }
  // The program deregisters it, perhaps in the middle of the call, and registers it again.
  void forget(const std::vector<std::shared_ptr<FakeDevice>>& devices) {
    for (const auto& device : devices) device->cache->forget(now_->number);
    now_->number = ++last_;
  }
  void fail(StripedLink& link, uint64_t posted, TimePoint now) {
    for (uint64_t slot = *send_.released; slot != posted; ++slot) {
      tuttiSlotHeader& header = send_.headers[slot % send_.depth];
      if (header.carried != TUTTI_LENT) continue;
      const size_t at = slot % send_.depth * size_t{kSlotBytes};
      std::memcpy(send_.slots + at, now_->bytes.data() + at, header.bytes);
      header.carried = 0;
    }
    link.takeBack(now);
    ++failed_;
    end(link);
  }
  void end(StripedLink& link) {
    if (std::exchange(holds_, false)) link.letGo(memory_.number);
    std::ranges::fill(now_->bytes, std::byte{0xbd});
    now_ = nullptr;
    ending_ = false;
  }

  tuttiFifo send_;
  std::mt19937_64& random_;
  std::array<Buffer, kBuffers> buffers_;
  uint64_t last_ = 0, held_ = 0, refused_ = 0, failed_ = 0;
  Buffer* now_ = nullptr;
  tuttiTransportMemory memory_{};
  bool holds_ = false, ending_ = false;
};

// What uses one end: posts, checks and releases.
class User {
 public:
  User(size_t end, const Memory& memory, std::mt19937_64& random)
      : caller(memory.fifo(end), random), end_(end), send_(memory.fifo(end)), recv_(memory.fifo(1 - end)) {}

  Caller caller;

  bool post(uint32_t bytes) {
    if (posted_ - *send_.released >= send_.depth || caller.isEnding()) return false;
    tuttiSlotHeader& header = send_.headers[posted_ % send_.depth];
    header.bytes = bytes;
    header.carried = carriedBy(posted_);
    for (size_t i = 0; i < sizeof header.fingerprint; ++i)
      header.fingerprint[i] = static_cast<unsigned char>(byteOf(~posted_, end_, i));
    unsigned char* place =
        bytes <= TUTTI_INLINE_BYTES ? header.inlined : send_.slots + posted_ % send_.depth * size_t{kSlotBytes};
    if (std::byte* const lent = caller.placeOf(posted_); lent != nullptr && bytes > TUTTI_INLINE_BYTES) {
      place = reinterpret_cast<unsigned char*>(lent);
      const auto address = reinterpret_cast<uint64_t>(lent);
      std::memcpy(header.inlined, &address, sizeof address);
      header.carried = TUTTI_LENT;
    }
    for (size_t i = 0; i < bytes; ++i) place[i] = static_cast<unsigned char>(byteOf(posted_, end_, i));
    lent_.push_back(header.carried == TUTTI_LENT);
    header.sequence = ++posted_;
    sizes_.push_back(bytes);
    return true;
  }
  // True when a slot was there, as the other one has posted it.
  bool take(const User& other) {
    tuttiSlotHeader& header = recv_.headers[taken_ % recv_.depth];
    if (taken_ - *recv_.released >= recv_.depth || header.sequence != taken_ + 1) return false;
    const uint32_t bytes = other.sizes_.at(taken_);
    EXPECT_EQ(header.bytes, bytes) << "slot " << taken_;
    EXPECT_EQ(header.carried, other.lent_.at(taken_) ? 0 : carriedBy(taken_)) << "slot " << taken_;
    bool same = header.bytes == bytes;
    for (size_t i = 0; i < sizeof header.fingerprint; ++i)
      same = same && header.fingerprint[i] == static_cast<unsigned char>(byteOf(~taken_, other.end_, i));
    const unsigned char* const place =
        bytes <= TUTTI_INLINE_BYTES ? header.inlined : recv_.slots + taken_ % recv_.depth * size_t{kSlotBytes};
    for (size_t i = 0; i < bytes && same; ++i)
      same = place[i] == static_cast<unsigned char>(byteOf(taken_, other.end_, i));
    EXPECT_TRUE(same) << "slot " << taken_ << " of " << bytes << " bytes";
    ++taken_;
    return true;
  }
  bool release() {
    if (*recv_.released == taken_) return false;
    ++*recv_.released;
    return true;
  }
  uint64_t posted() const { return posted_; }
  uint64_t taken() const { return taken_; }
  bool isDone(uint64_t slots) const { return taken_ == slots && *recv_.released == slots && *send_.released == slots; }

 private:
  // Anything but TUTTI_LENT.
  static uint32_t carriedBy(uint64_t slot) { return std::array{0u, 2u, 3u}[slot % 3]; }

  size_t end_;
  tuttiFifo send_, recv_;
  uint64_t posted_ = 0, taken_ = 0;
  std::vector<uint32_t> sizes_;
  std::vector<bool> lent_;
};

class World {
 public:
  World(uint64_t seed, const Options& options)
      : options_(options),
        random_(seed),
        memories_{std::make_unique<Memory>(options.depth, options.onGpu),
                  std::make_unique<Memory>(options.depth, options.onGpu)},
        users_{User(0, *memories_[0], random_), User(1, *memories_[1], random_)} {
    faults_ = {};
    for (size_t end = 0; end < 2; ++end) {
      const Memory& memory = *memories_[end];
      for (const char* name : {"one", "other"})
        devices_[end].push_back(
            std::make_shared<FakeDevice>(name, options.deviceBytes, random_, faults_.refusedMemory));
      links_[end] = std::make_unique<StripedLink>(memory.fifo(end), memory.fifo(1 - end), memory.data(), end == 0);
      if (options.onGpu) links_[end]->slotsIn(memory.gpu()->describe());
    }
    for (size_t i = 0; i < options.paths; ++i) {
      FakeQueue* queues[2];
      for (size_t end = 0; end < 2; ++end) {
        auto queue =
            std::make_unique<FakeQueue>("fake_" + std::to_string(i), memories_[end]->data(), memories_[end]->bytes(),
                                        random_, faults_, devices_[end][i % 2], memories_[end]->gpu());
        queues[end] = queue.get();
        links_[end]->addPath(std::move(queue), {});
      }
      paths_.emplace_back(*queues[0], *queues[1]);
    }
    EXPECT_TRUE(links_[0]->begin() && links_[1]->begin());
    faults_ = options.faults;
  }

  // Until all is there, or the link has failed at an end: true, and then false. Who has nothing under way does not hear
  // of the other's failure, which in a job the control plane tells.
  bool run() {
    uint64_t steps = 0, quiet = 0;
    while (!users_[0].isDone(options_.slots) || !users_[1].isDone(options_.slots)) {
      step();
      if (failed_[0] || failed_[1]) return false;
      const bool all = users_[0].posted() == options_.slots && users_[1].posted() == options_.slots;
      if (all && ++quiet == 1000) calm();
      if (++steps > 4000 * options_.slots + 1'000'000) {
        ADD_FAILURE() << "hangs at " << users_[0].taken() << " and " << users_[1].taken() << " of " << options_.slots;
        return false;
      }
      if (::testing::Test::HasFailure()) return false;
    }
    return comesBack();
  }
  const StripedLink& link(size_t end) const { return *links_[end]; }
  const Caller& caller(size_t end) const { return users_[end].caller; }
  // Of both devices of an end.
  uint64_t registered(size_t end) const { return devices_[end][0]->cache->made() + devices_[end][1]->cache->made(); }
  uint64_t moved() const { return users_[0].taken() + users_[1].taken(); }

 private:
  // When nothing breaks any more, all paths are used again.
  bool comesBack() {
    calm();
    const auto isUp = [](const auto& path) { return path->isUp(); };
    for (int steps = 0; steps < 20'000'000; ++steps) {
      const auto areUp = [&](const auto& link) { return std::ranges::all_of(link->paths(), isUp); };
      if (areUp(links_[0]) && areUp(links_[1])) return true;
      step();
      if (failed_[0] || failed_[1]) return false;
    }
    ADD_FAILURE() << "a path does not come back";
    return false;
  }
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }
  bool happens(double part) { return part > 0 && std::uniform_real_distribution<>(0, 1)(random_) < part; }
  void calm() {
    faults_ = {};
    options_.breaks = 0;
    troubled_ = 0;
  }
  uint32_t someBytes() {
    const size_t kind = below(100);
    if (kind < 60) return static_cast<uint32_t>(below(TUTTI_INLINE_BYTES + 1));
    if (kind < 95) return static_cast<uint32_t>(below(200));
    return static_cast<uint32_t>(kind < 98 ? below(kSlotBytes + 1) : kSlotBytes);
  }
  void step() {
    const size_t end = below(2);
    FakePath& path = paths_[below(paths_.size())];
    // One seldom comes alone: what the ends tell each other about a path is lost with the next.
    if (happens(options_.breaks + (troubled_ > 0 ? 0.02 : 0))) {
      path.breakAt(end, happens(0.5));
      troubled_ = happens(0.4) ? 60 : 0;
    }
    if (troubled_ > 0) --troubled_;
    switch (below(options_.lends ? 8 : 7)) {
      case 0:
        if (users_[end].posted() < options_.slots) users_[end].post(someBytes());
        return;
      case 1:
        users_[end].take(users_[1 - end]);
        return;
      case 2:
        users_[end].release();
        return;
      case 3:
        path.leave(end);
        return;
      case 4:
        path.arrive(end);
        return;
      case 5:
        path.acknowledge(end);
        return;
      case 6:
        now_ += milliseconds(below(50));
        failed_[end] = links_[end]->progress(now_) == Progress::kFailed;
        return;
      default:
        users_[end].caller.turn(*links_[end], devices_[end], users_[end].posted(), options_, now_);
        for (const auto& device : devices_[end]) EXPECT_LE(device->cache->bytes(), options_.cacheBytes);
    }
  }

  Options options_;
  std::mt19937_64 random_;
  FakeFaults faults_;
  std::array<std::unique_ptr<Memory>, 2> memories_;
  std::array<User, 2> users_;
  std::array<std::vector<std::shared_ptr<FakeDevice>>, 2> devices_;
  std::array<std::unique_ptr<StripedLink>, 2> links_;
  std::vector<FakePath> paths_;
  std::array<bool, 2> failed_{};
  int troubled_ = 0;
  TimePoint now_{};
};

}  // namespace tutti::verbs
