// Two ends of a striped link over devices that delay, refuse and break: every slot comes once, in its order, unchanged,
// or the link says that it has failed.
#include "transports/verbs/striped_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "link/fifo.h"
#include "support/sanitized.h"
#include "verbs/fake_network.h"

namespace tutti::verbs {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kSlotBytes = 40'000;

static_assert(sizeof(tuttiSlotHeader) == sizeof(link::SlotHeader));

struct Options {
  size_t paths = 2;
  uint32_t depth = 8;
  uint64_t slots = 1000;  // each way
  double breaks = 0;      // of steps
  FakeFaults faults{};
};

// The memory of one end: both FIFOs, the one from end 0 first.
class Memory {
 public:
  explicit Memory(uint32_t depth)
      : depth_(depth), one_(link::Fifo::bytesFor(kSlotBytes, depth) / 128 * 128 + 128), bytes_(2 * one_) {
    data_ = static_cast<std::byte*>(std::aligned_alloc(4096, (bytes_ + 4095) / 4096 * 4096));
    std::memset(data_, 0, bytes_);
  }
  ~Memory() { std::free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  tuttiFifo fifo(size_t from) const {
    std::byte* const base = data_ + from * one_;
    auto* const headers = reinterpret_cast<tuttiSlotHeader*>(base + sizeof(link::Counter));
    return {reinterpret_cast<unsigned char*>(headers + depth_), headers, reinterpret_cast<uint64_t*>(base), kSlotBytes,
            depth_};
  }

 private:
  uint32_t depth_;
  size_t one_, bytes_;
  std::byte* data_;
};

// What slot `number` of one end holds: every byte differs from its neighbours, and from those of other slots.
std::byte byteOf(uint64_t number, size_t end, size_t at) {
  const uint64_t word = (number * 2 + end + 1) * 0x9e3779b97f4a7c15u + at * 0xc2b2ae3d27d4eb4fu;
  return static_cast<std::byte>(word >> 56);
}

// What uses one end: posts, checks and releases.
class User {
 public:
  User(size_t end, const Memory& memory) : end_(end), send_(memory.fifo(end)), recv_(memory.fifo(1 - end)) {}

  bool post(uint32_t bytes) {
    if (posted_ - *send_.released >= send_.depth) return false;
    tuttiSlotHeader& header = send_.headers[posted_ % send_.depth];
    header.bytes = bytes;
    header.carried = static_cast<uint32_t>(posted_ % 3);
    for (size_t i = 0; i < sizeof header.fingerprint; ++i)
      header.fingerprint[i] = static_cast<unsigned char>(byteOf(~posted_, end_, i));
    unsigned char* const place =
        bytes <= TUTTI_INLINE_BYTES ? header.inlined : send_.slots + posted_ % send_.depth * size_t{kSlotBytes};
    for (size_t i = 0; i < bytes; ++i) place[i] = static_cast<unsigned char>(byteOf(posted_, end_, i));
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
    EXPECT_EQ(header.carried, taken_ % 3);
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
  size_t end_;
  tuttiFifo send_, recv_;
  uint64_t posted_ = 0, taken_ = 0;
  std::vector<uint32_t> sizes_;
};

class World {
 public:
  World(uint64_t seed, const Options& options)
      : options_(options),
        random_(seed),
        memories_{std::make_unique<Memory>(options.depth), std::make_unique<Memory>(options.depth)},
        users_{User(0, *memories_[0]), User(1, *memories_[1])} {
    faults_ = {};
    for (size_t end = 0; end < 2; ++end) {
      const Memory& memory = *memories_[end];
      links_[end] = std::make_unique<StripedLink>(memory.fifo(end), memory.fifo(1 - end), memory.data(), end == 0);
    }
    for (size_t i = 0; i < options.paths; ++i) {
      FakeQueue* queues[2];
      for (size_t end = 0; end < 2; ++end) {
        auto queue = std::make_unique<FakeQueue>("fake_" + std::to_string(i), memories_[end]->data(),
                                                 memories_[end]->bytes(), random_, faults_);
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
    switch (below(7)) {
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
      default:
        now_ += milliseconds(below(50));
        failed_[end] = links_[end]->progress(now_) == Progress::kFailed;
    }
  }

  Options options_;
  std::mt19937_64 random_;
  FakeFaults faults_;
  std::array<std::unique_ptr<Memory>, 2> memories_;
  std::array<User, 2> users_;
  std::array<std::unique_ptr<StripedLink>, 2> links_;
  std::vector<FakePath> paths_;
  std::array<bool, 2> failed_{};
  int troubled_ = 0;
  TimePoint now_{};
};

TEST(StripedLink, OnePathDelivers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    World world(seed, {.paths = 1, .slots = 500});
    EXPECT_TRUE(world.run()) << "seed " << seed << ": " << world.link(0).error();
  }
}

TEST(StripedLink, SeveralPathsDeliver) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const size_t paths : {2, 3, 8}) {
      World world(seed, {.paths = paths, .depth = seed % 2 ? 8u : 1u, .slots = 300});
      EXPECT_TRUE(world.run()) << "seed " << seed << ": " << world.link(0).error();
    }
}

TEST(StripedLink, TheLastPathTakesTheLinkWithIt) {
  World world(1, {.paths = 1, .slots = 100'000, .breaks = 1e-3});
  EXPECT_FALSE(world.run());
  const std::string error = world.link(0).error() + world.link(1).error();
  EXPECT_EQ(error.substr(0, 8), "fake_0: ") << error;
}

// Of many worlds in which paths break, and are refused, and come back.
struct Tally {
  uint64_t moved = 0, broken = 0, revived = 0, failed = 0, worlds = 0;
  void run(uint64_t seed) {
    const size_t paths = 3 + seed % 4;
    World world(
        seed,
        {.paths = paths,
         .depth = 1u << seed % 5,
         .slots = 400,
         .breaks = 3e-5 * static_cast<double>(paths),
         .faults = {
             .refusedWrite = 1e-4, .refusedNotes = 1e-4, .refusedLife = 0.2, .failedPoll = 1e-5, .inactivePort = 0.5}});
    if (!world.run()) {
      ++failed;
      for (size_t end = 0; end < 2; ++end) {  // for want of paths, and for nothing else
        const std::string error = world.link(end).error();
        EXPECT_TRUE(error.empty() || error.starts_with("fake_")) << error;
      }
    }
    moved += world.moved();
    broken += world.link(0).broken();
    revived += world.link(0).revived();
    ++worlds;
  }
};

TEST(StripedLink, WhatABrokenPathHeldGoesOtherWays) {
  const uint64_t slots = kSanitized ? 50'000 : 1'000'000;
  Tally tally;
  for (uint64_t seed = 0; tally.moved < slots; ++seed) {
    tally.run(seed);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  std::printf("%lu slots in %lu worlds: %lu paths broke, %lu came back, %lu links lost their last one\n", tally.moved,
              tally.worlds, tally.broken, tally.revived, tally.failed);
  EXPECT_GT(tally.broken, tally.worlds);
  EXPECT_GT(tally.revived, tally.worlds / 2);
  EXPECT_LT(tally.failed, tally.worlds / 2);
}

}  // namespace
}  // namespace tutti::verbs
