// How a thread waits when none of its lanes can go on: spin briefly, then yield, then sleep on the rank's bell or on
// its sockets. With more ranks than cores it does not spin: the peer it waits for needs the core.
#pragma once
#include <poll.h>

#include <cstdint>
#include <vector>

#include "link/fifo.h"

namespace tutti::engine {

class Waiter {
 public:
  explicit Waiter(bool spins) noexcept : spins_(spins) {}
  // Something happened: start again from spinning.
  void reset() noexcept { idle_ = 0; }
  // Call after a look at all lanes that found nothing to do. Returns true when it is time for the slow checks (failure,
  // abort, deadline): seldom while spinning, always before a sleep.
  bool pause() noexcept;
  // True when the thread has waited long enough to sleep.
  bool mayDoze() const noexcept { return idle_ >= kYieldsUntil; }

 private:
  static constexpr uint32_t kLooksBeforeRelaxing = 200;
  static constexpr uint32_t kSpinsUntil = 4000;   // about 100 us of pauses
  static constexpr uint32_t kYieldsUntil = 8000;  // then some milliseconds of giving way
  bool spins_;
  uint32_t idle_ = 0;
};

// Sleeps until the bell rings, a socket has news, or a millisecond has passed. The caller has set bell.sleeping and
// looked at its lanes once more in between; armBell / disarmBell do the first.
void armBell(link::Bell& bell) noexcept;
void disarmBell(link::Bell& bell) noexcept;
void doze(link::Bell* bell, uint32_t seenRings, std::vector<pollfd>& sockets) noexcept;

}  // namespace tutti::engine
