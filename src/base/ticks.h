// A clock that costs a few nanoseconds to read, for the flight recorder: the processor's time stamp counter where there
// is one, else the steady clock. A Timeline turns its ticks into time.
#pragma once
#include <chrono>
#include <cstdint>

namespace tutti {

inline uint64_t readTicks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // <x86intrin.h> would cost every file that sees this a second to compile
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Two moments on both clocks give the rate of the ticks; the wall clock of the first gives the date. The counter of
// today's processors runs at a constant rate and alike on all cores.
class Timeline {
 public:
  Timeline() noexcept : start_(now()) {}

  // Nanoseconds since 1970 of a moment since this object was made. Any thread.
  int64_t wallNs(uint64_t ticks) const noexcept {
    return start_.wallNs +
           static_cast<int64_t>(rate() * (static_cast<double>(ticks) - static_cast<double>(start_.ticks)));
  }
  // How long so many ticks are. Any thread.
  uint64_t nanoseconds(uint64_t ticks) const noexcept {
    return static_cast<uint64_t>(rate() * static_cast<double>(ticks));
  }

 private:
  struct Moment {
    uint64_t ticks = 0;
    int64_t steadyNs = 0, wallNs = 0;
  };
  double rate() const noexcept {
    const Moment end = now();
    return end.ticks > start_.ticks
               ? static_cast<double>(end.steadyNs - start_.steadyNs) / static_cast<double>(end.ticks - start_.ticks)
               : 0;
  }
  static Moment now() noexcept {
    using std::chrono::nanoseconds;
    const auto ns = [](auto time) { return std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count(); };
    return {readTicks(), ns(std::chrono::steady_clock::now()), ns(std::chrono::system_clock::now())};
  }
  Moment start_;
};

}  // namespace tutti
