// Memory that runs out when a test says so. The tests of tests/collective have an operator new that asks this file.
#pragma once
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tutti::test {

enum class Shortage { kOnce, kForGood };

// What the calling thread is given. Trivial: asked for to the thread's very end.
struct Ration {
  int left = -1;  // so many allocations succeed from now on; then one fails, or all. Negative: all succeed
  Shortage lack = Shortage::kOnce;
  bool lacked = false;  // one has failed
  bool spared = false;  // by othersStarve
};
inline thread_local constinit Ration ration;
// Every allocation of the threads that are not spared fails.
inline constinit std::atomic<bool> othersStarve{false};
// So many of their allocations succeed from now on, then one fails. Negative: all succeed.
inline constinit std::atomic<int> othersLeft{-1};

inline bool othersFailNow() noexcept {
  if (othersStarve.load(std::memory_order_relaxed)) return true;
  return othersLeft.load(std::memory_order_relaxed) >= 0 && othersLeft.fetch_sub(1, std::memory_order_relaxed) == 0;
}

inline bool failsNow() noexcept {
  if (!ration.spared && othersFailNow()) return true;
  if (ration.left < 0) return false;
  if (ration.left > 0) return --ration.left, false;
  if (ration.lack == Shortage::kOnce) ration.left = -1;
  return ration.lacked = true;
}

// While `keeps` is set, what the calling thread gives back is filled with kGone and kept: whether anybody writes to it
// afterwards can be seen. Trivial, as the ration is.
struct GivenBack {
  static constexpr unsigned char kGone = 0xdd;
  bool keeps = false;
  size_t count = 0;
  std::array<unsigned char*, 256> blocks{};

  bool keep(void* block) noexcept {
    if (!keeps || block == nullptr || count == blocks.size()) return false;
    std::memset(block, kGone, ::malloc_usable_size(block));
    blocks[count++] = static_cast<unsigned char*>(block);
    return true;
  }
  void release() noexcept {
    for (size_t i = 0; i < count; ++i) std::free(blocks[i]);
    *this = {};
  }
  bool untouched() const noexcept {
    return std::all_of(blocks.begin(), blocks.begin() + count, [](unsigned char* block) {
      return std::all_of(block, block + ::malloc_usable_size(block), [](unsigned char c) { return c == kGone; });
    });
  }
};
inline thread_local constinit GivenBack givenBack;

// What a test prepares and tidies up, with memory for all it wants.
class Unlimited {
 public:
  Unlimited() : left_(std::exchange(ration.left, -1)) {}
  ~Unlimited() { ration.left = left_; }
  Unlimited(const Unlimited&) = delete;
  Unlimited& operator=(const Unlimited&) = delete;

 private:
  const int left_;
};

// While it lives, the threads that are not the calling one get nothing at all.
class OthersStarve {
 public:
  OthersStarve() {
    ration.spared = true;
    othersStarve.store(true);
  }
  ~OthersStarve() {
    othersStarve.store(false);
    ration.spared = false;
  }
  OthersStarve(const OthersStarve&) = delete;
  OthersStarve& operator=(const OthersStarve&) = delete;
};

// While it lives, the threads that are not the calling one get so many allocations, not the next one, and then all.
class OthersLackOne {
 public:
  explicit OthersLackOne(int given) {
    ration.spared = true;
    othersLeft.store(given);
  }
  ~OthersLackOne() {
    othersLeft.store(-1);
    ration.spared = false;
  }
  OthersLackOne(const OthersLackOne&) = delete;
  OthersLackOne& operator=(const OthersLackOne&) = delete;
  static bool lacked() noexcept { return othersLeft.load() < 0; }
};

}  // namespace tutti::test
