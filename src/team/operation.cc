#include "team/operation.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tutti::comm {

bool Operation::begin(Part part) noexcept {
  // Acquire: pairs with close(); what the last run wrote is behind this one.
  if (under_.load(std::memory_order_acquire) & part) return false;
  taken_.fetch_and(~uint32_t{part}, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  under_.fetch_or(part, std::memory_order_relaxed);
  return true;
}

bool Operation::renew() noexcept {
  if (under_.load(std::memory_order_acquire) & kRunning) return false;
  failed_.store(false, std::memory_order_relaxed);
  return true;
}

void Operation::giveUp(Part part, const Error& why) noexcept {
  const uint32_t untaken = under_.load(std::memory_order_relaxed) & ~taken_.load(std::memory_order_relaxed);
  if (untaken & part) end(part, why);
}

void Operation::end(Part part, const Error& why) noexcept {
  {
    std::lock_guard lock(mutex_);
    why_ = why;
    failed_.store(true, std::memory_order_relaxed);
  }
  close(part);
}

void Operation::close(Part part) noexcept {
  // Release: pairs with done(); what the operation wrote is there for whoever sees that it has ended.
  under_.fetch_and(~uint32_t{part}, std::memory_order_release);
  under_.notify_all();
}

bool Operation::done() noexcept {
  if (needsLooks()) look();
  return under_.load(std::memory_order_acquire) == 0;
}

void Operation::result() const {
  if (!failed_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  if (why_) throw Error(*why_);
}

void Operation::wait() noexcept {
  constexpr std::chrono::microseconds kShort(10), kLong(500);
  for (auto pause = kShort; needsLooks() && !done(); pause = std::min(2 * pause, kLong))
    std::this_thread::sleep_for(pause);
  for (uint32_t under = under_.load(std::memory_order_acquire); under != 0;
       under = under_.load(std::memory_order_acquire))
    under_.wait(under, std::memory_order_acquire);
}

}  // namespace tutti::comm
