// A man in the middle: passes bytes on between two ends of a connection, and does one wrong thing to them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "process/fd.h"

namespace tutti::test {

enum class Tampering : uint8_t {
  kNone,
  kFlip,      // one bit of the byte `at`
  kRepeat,    // `bytes` bytes from `at` on come twice
  kDrop,      // `bytes` bytes from `at` on do not come
  kSwap,      // `bytes` bytes come after the next `bytes`: from `at` on, the first that differ from those
  kTruncate,  // nothing from `at` on, and the connection ends
};

// What happens to the bytes from the left end to the right; the others pass untouched.
struct Tamper {
  Tampering what = Tampering::kNone;
  size_t at = 0, bytes = 1;
  uint8_t bit = 0;
};

// A thread between `left` and `right`, until either hangs up or this goes.
class Interloper {
 public:
  Interloper(UniqueFd left, UniqueFd right, Tamper tamper);
  ~Interloper();
  Interloper(const Interloper&) = delete;
  Interloper& operator=(const Interloper&) = delete;
  size_t passed() const noexcept { return passed_; }  // bytes from the left

 private:
  void run();
  bool pass(int from, int to, bool bend);
  bool bend(std::vector<std::byte>& chunk);
  void passUntil(size_t at, std::vector<std::byte>& chunk);

  UniqueFd left_, right_;
  Tamper tamper_;
  std::vector<std::byte> held_;  // bytes from the left that are not decided about
  size_t seen_ = 0;              // bytes before held_
  bool done_ = false;            // the wrong thing
  std::atomic<size_t> passed_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A connected pair of TCP sockets with an interloper between them: first the left end, then the right.
struct InterceptedPair {
  explicit InterceptedPair(Tamper tamper);
  UniqueFd left, right;
  std::unique_ptr<Interloper> interloper;
};

}  // namespace tutti::test
