#include "engine/waiter.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

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

bool Waiter::pause() noexcept {
  if (!spins_ && idle_ < kSpinsUntil) idle_ = kSpinsUntil;
  if (idle_ < kSpinsUntil) {
    // Peers that keep step answer within a microsecond; a pause instruction alone can take a seventh of that.
    if (++idle_ > kLooksBeforeRelaxing) relax();
    return (idle_ & 255) == 0;
  }
  idle_ = std::min(idle_ + 1, kYieldsUntil);
  ::sched_yield();
  return (idle_ & 63) == 0 || mayDoze();
}

void armBell(link::Bell& bell) noexcept {
  // The look at the lanes that follows should not move before this: a read-modify-write of the strictest order is a
  // full barrier where it matters. It would pair with a fence in link::ring(), which has none (it is on the short
  // path), so a ring may still be missed; the sleep is bounded for that.
  bell.sleeping.exchange(1, std::memory_order_seq_cst);
}

void disarmBell(link::Bell& bell) noexcept { bell.sleeping.store(0, std::memory_order_relaxed); }

void doze(link::Bell* bell, uint32_t seenRings, std::vector<pollfd>& sockets) noexcept {
  if (!sockets.empty() || bell == nullptr) {
    ::poll(sockets.data(), sockets.size(), 1);
    return;
  }
  const timespec limit{0, 1'000'000};
  ::syscall(SYS_futex, &bell->rings, FUTEX_WAIT, seenRings, &limit, nullptr, 0);
}

}  // namespace tutti::engine
