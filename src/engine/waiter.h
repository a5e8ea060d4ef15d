// How a thread waits when none of its lanes can go on: spin briefly, then yield, then sleep (see Sleeper). With more
// ranks than cores it does not spin: the peer it waits for needs the core; and the more they are the fewer yields it
// takes, each of which comes round to all of them. On a core where somebody computes (Crowd) it sleeps after a quarter
// of the spinning, or at once where ranks share it: whoever is woken comes before those who have had their share,
// whoever gave way comes after them.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::engine {

// Whether others compute on the cores of those who wait: then a yield takes a whole slice of time. It is felt by
// trying, and then believed for a while: the longer, the more often it was found again. Any thread.
class Crowd {
 public:
  // Ranks that share a core do work of their own, each in its turn.
  explicit Crowd(double ranksPerCore = 1) noexcept;
  bool felt() noexcept;
  // Whether ranks share this one's cores.
  bool takesTurns() const noexcept { return takesTurns_; }
  // How many ticks a yield took.
  void judge(uint64_t now, uint64_t ticks) noexcept;

 private:
  // About a millisecond: ranks that only wait give way within microseconds, schedulers' slices are of 1.5 ms and more.
  static constexpr uint64_t kSlice = 2'000'000;
  // A single slice, as somebody else's start takes, must not cost the calls of the next moment.
  static constexpr uint64_t kLeastBelieved = 2 * kSlice, kMostBelieved = 64 * kSlice;
  // Yields of which one that takes long says nothing, where ranks take turns.
  static constexpr uint32_t kFarApart = 8;
  bool isHint(bool tookASlice) noexcept;
  const bool takesTurns_;
  const uint64_t slice_;  // what takes longer was somebody else's
  // In ticks; 0: nothing is believed. Relaxed: it decides how to wait, and orders nothing.
  std::atomic<uint64_t> until_{0};
  std::atomic<uint64_t> believed_{0};           // the last time, for so long
  std::atomic<bool> doubts_{false};             // it is over, and no yield has shown whether rightly
  std::atomic<uint32_t> sinceLong_{kFarApart};  // yields
};

// How long a sleep lasts that nothing ends. A thread has to look for what nobody rings for, such as the end of another
// rank; but those that share a core must not have more to do with looking than it has time.
std::chrono::nanoseconds longestSleep(double ranksPerCore) noexcept;

class Waiter {
 public:
  // Peers that keep step answer within a microsecond; a pause instruction alone can take a seventh of that.
  static constexpr uint32_t kLooksBeforeRelaxing = 200;
  static constexpr uint32_t kLooksOfASystemCall = 30, kLooksWithDrivers = 4;  // one of them counts as so many

  Waiter(double ranksPerCore, Crowd& crowd) noexcept;
  // Something happened: start again from spinning.
  void reset() noexcept { idle_ = 0; }
  // Call after a look at all lanes that found nothing to do. Returns true when it is time for the slow checks (failure,
  // abort, deadline): seldom while spinning, always before a sleep.
  // `onSockets`: something may come over these. Then a look takes longer, and much longer if it `asked` the system, and
  // it sleeps after fewer yields: each ends with a look at the socket that finds nothing, and the system wakes it when
  // something has come; but whoever has to wake it has that to do, and where ranks share cores they come round soon.
  bool pause(bool onSockets = false, bool asked = false) noexcept;
  // True when the thread has waited long enough to sleep.
  bool mayDoze() const noexcept { return idle_ >= kYieldsUntil; }

 private:
  static constexpr uint32_t kSpinsUntil = 4000;   // about 100 us of pauses
  static constexpr uint32_t kYieldsUntil = 8000;  // then some milliseconds of giving way
  // Ranks that have their turns at the same time answer each other sooner than one wakes the other.
  static constexpr uint32_t kSpinsInACrowd = 1000;
  static constexpr uint32_t kYieldsOnSockets = 64;
  bool spin(bool onSockets, bool asked) noexcept;
  void giveWay(bool onSockets) noexcept;
  uint32_t first_;   // of the count below, after the first look
  uint32_t yields_;  // how far a yield moves it
  Crowd& crowd_;
  uint32_t idle_ = 0;
};

}  // namespace tutti::engine
