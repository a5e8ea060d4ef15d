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
// today's processors runs at a constant rate and alike on all cores. Ticks are counted back from now, not on from the
// start: what two calls say of recent ticks differs by what the rate changed since these, not since the start.
class Timeline {
 public:
  Timeline() noexcept : start_(now()) {}

  // Nanoseconds since 1970 of a moment since this object was made. Any thread.
  int64_t wallNs(uint64_t ticks) const noexcept {
    const Moment end = now();
    return start_.wallNs + (end.steadyNs - start_.steadyNs) -
           static_cast<int64_t>(rate(end) * (static_cast<double>(end.ticks) - static_cast<double>(ticks)));
  }
  // How long so many ticks are. Any thread.
  uint64_t nanoseconds(uint64_t ticks) const noexcept {
    return static_cast<uint64_t>(rate(now()) * static_cast<double>(ticks));
  }

 private:
  struct Moment {
    uint64_t ticks = 0;
    int64_t steadyNs = 0, wallNs = 0;
    uint64_t spread = 0;  // ticks from the first clock that was read to the last
  };
  static constexpr uint64_t kClose = 1000;
  double rate(const Moment& end) const noexcept {
    return end.ticks > start_.ticks
               ? static_cast<double>(end.steadyNs - start_.steadyNs) / static_cast<double>(end.ticks - start_.ticks)
               : 0;
  }
  // A thread that loses its core between two clocks reads them milliseconds apart: the closest of some attempts counts.
  static Moment now() noexcept {
    Moment closest = attempt();
    for (int more = 0; more < 8 && closest.spread > kClose; ++more) {
      const Moment other = attempt();
      if (other.spread < closest.spread) closest = other;
    }
    return closest;
  }
  static Moment attempt() noexcept {
    using std::chrono::nanoseconds;
    const auto ns = [](auto time) { return std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count(); };
    const uint64_t ticks = readTicks();
    const int64_t steadyNs = ns(std::chrono::steady_clock::now()), wallNs = ns(std::chrono::system_clock::now());
    return {ticks, steadyNs, wallNs, readTicks() - ticks};
  }
  Moment start_;
};

}  // namespace tutti
