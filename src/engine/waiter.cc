#include "engine/waiter.h"

#include <sched.h>

#include <algorithm>

#include "base/ticks.h"

namespace tutti::engine {
namespace {

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace

Crowd::Crowd(double ranksPerCore) noexcept
    : takesTurns_(ranksPerCore > 1),
      slice_(static_cast<uint64_t>(double(kSlice) * std::clamp(ranksPerCore, 1.0, 4.0))) {}

bool Crowd::felt() noexcept {
  const uint64_t until = until_.load(std::memory_order_relaxed);
  if (until == 0) return false;
  if (readTicks() < until) return true;
  until_.store(0, std::memory_order_relaxed);
  doubts_.store(true, std::memory_order_relaxed);
  return false;
}

// Ranks that share a core and have a long message may work for as long, each in its turn, but seldom all of them twice.
bool Crowd::isHint(bool tookASlice) noexcept {
  const uint32_t since = sinceLong_.load(std::memory_order_relaxed);
  sinceLong_.store(tookASlice ? 0 : std::min(since + 1, kFarApart), std::memory_order_relaxed);
  return tookASlice && (!takesTurns_ || since < kFarApart || doubts_.load(std::memory_order_relaxed));
}

void Crowd::judge(uint64_t now, uint64_t ticks) noexcept {
  const uint64_t last = believed_.load(std::memory_order_relaxed);
  if (isHint(ticks > slice_)) {
    const uint64_t next = std::clamp(2 * last, kLeastBelieved, kMostBelieved);
    believed_.store(next, std::memory_order_relaxed);
    until_.store(now + next, std::memory_order_relaxed);
  } else if (doubts_.load(std::memory_order_relaxed)) {
    doubts_.store(false, std::memory_order_relaxed);
    believed_.store(last / 2, std::memory_order_relaxed);
  }
}

std::chrono::nanoseconds longestSleep(double ranksPerCore) noexcept {
  constexpr double kRanksOfAMillisecond = 4, kMost = 16;
  return std::chrono::microseconds(
      static_cast<long>(1000 * std::clamp(ranksPerCore / kRanksOfAMillisecond, 1.0, kMost)));
}

Waiter::Waiter(double ranksPerCore, Crowd& crowd) noexcept
    : first_(ranksPerCore > 1 ? kSpinsUntil : 0),
      yields_(static_cast<uint32_t>(std::clamp(ranksPerCore, 1.0, double(kYieldsUntil - kSpinsUntil)))),
      crowd_(crowd) {}

bool Waiter::pause(bool onSockets, bool asked) noexcept {
  if (idle_ < first_) idle_ = first_;
  if (idle_ >= kSpinsInACrowd && idle_ < kYieldsUntil && crowd_.felt()) [[unlikely]]
    idle_ = kYieldsUntil;
  if (idle_ < kSpinsUntil) return spin(onSockets, asked);
  if (!mayDoze()) giveWay(onSockets);
  return (idle_ & 63) == 0 || mayDoze();
}

bool Waiter::spin(bool onSockets, bool asked) noexcept {
  const uint32_t moved = asked ? kLooksOfASystemCall : onSockets ? kLooksWithDrivers : 1;
  if (!asked && idle_ >= kLooksBeforeRelaxing) relax();
  idle_ += moved;
  return (idle_ & 255) < moved;
}

void Waiter::giveWay(bool onSockets) noexcept {
  const uint64_t before = readTicks();
  ::sched_yield();
  const uint64_t now = readTicks();
  crowd_.judge(now, now - before);
  const uint32_t one = onSockets ? (kYieldsUntil - kSpinsUntil) / kYieldsOnSockets : yields_;
  idle_ = crowd_.felt() ? kYieldsUntil : idle_ + std::max(one, yields_);
}

}  // namespace tutti::engine
