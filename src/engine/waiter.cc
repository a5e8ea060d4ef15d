#include "engine/waiter.h"

#include <sched.h>

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

}  // namespace tutti::engine
