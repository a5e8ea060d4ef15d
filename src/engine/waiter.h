// How a thread waits when none of its lanes can go on: spin briefly, then yield, then sleep (see Sleeper). With more
// ranks than cores it does not spin: the peer it waits for needs the core.
#pragma once
#include <cstdint>

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

}  // namespace tutti::engine
