// A point in time by which something must have happened.
#pragma once
#include <algorithm>
#include <chrono>

namespace tutti {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static Deadline in(std::chrono::milliseconds span) { return Deadline(Clock::now() + span); }
  static Deadline never() { return Deadline(Clock::time_point::max()); }
  bool passed() const { return when_ != Clock::time_point::max() && Clock::now() >= when_; }
  // What is left, never negative; for never() a day, so that it can be handed to a system call.
  std::chrono::milliseconds left() const {
    if (when_ == Clock::time_point::max()) return std::chrono::hours(24);
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(when_ - Clock::now()));
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace tutti
