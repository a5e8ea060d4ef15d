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

void Driver::waitForTurn() noexcept {
  while (busy_.test_and_set(std::memory_order_acquire)) ::sched_yield();
}

Driver::Interest Driver::interest() noexcept {
  Interest now{};
  alone([&] { now = wanted(); });
  return now;
}

// One that has left in part is the same in its slot: what follows comes from there.
void SendEnd::moveIntoSlots() noexcept {
  driver->alone([this] {
    for (uint64_t slot = fifo.released->value.load(std::memory_order_acquire); slot != posted; ++slot) {
      SlotHeader& line = fifo.line(slot);
      if (line.carried != PayloadLocation::kAtSender) continue;
      std::memcpy(fifo.slot(slot), placeSent(fifo, slot), line.bytes);
      line.carried = PayloadLocation::kInSlot;
    }
    driver->stopSendingBuffers();
  });
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
