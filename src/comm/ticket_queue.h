// The order of calls of one kind on one communicator: they pass one after the other, in the order in which they were
// made, whichever thread or stream runs them.
#pragma once
#include <atomic>
#include <cstdint>

namespace tutti::comm {

class TicketQueue {
 public:
  // By the thread that makes the call: there is one at a time. Others may ask idle(), hence the atomic.
  uint64_t take() noexcept {
    const uint64_t ticket = next_.load(std::memory_order_relaxed);
    next_.store(ticket + 1, std::memory_order_relaxed);
    return ticket;
  }
  // Acquire: pairs with pass(); what the call before did to plans and links is visible.
  bool isTurn(uint64_t ticket) const noexcept { return current_.load(std::memory_order_acquire) == ticket; }
  void pass(uint64_t ticket) noexcept { current_.store(ticket + 1, std::memory_order_release); }
  uint64_t passed() const noexcept { return current_.load(std::memory_order_relaxed); }
  bool idle() const noexcept {
    return current_.load(std::memory_order_acquire) == next_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> current_{0};
};

}  // namespace tutti::comm
