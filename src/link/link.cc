#include "link/link.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <exception>

#include "base/error.h"
#include "link/ear.h"

namespace tutti::link {

Driver::Interest Driver::interest() noexcept {
  while (busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();
  const Interest wanted{pollFd(), pollEvents()};
  busy_.clear(std::memory_order_release);  // pairs with the acquires above and in drive()
  return wanted;
}

std::string whyFailed(const Driver& driver) noexcept {
  try {
    return driver.error();
  } catch (const std::exception&) {
    return kNoMemory;
  }
}

void wake(Doorbell& bell) noexcept {
  bell.rings.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &bell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  // Acquire: pairs with the sleeper's release in engine/sleeper.cc; the name is complete.
  if (bell.polling.load(std::memory_order_acquire) != 0) nudge(bell);
}

}  // namespace tutti::link
