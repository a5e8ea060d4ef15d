// How a thread waits that drives links for those who can not wake it, the kernels of a GPU: while something runs there
// it gives way for some milliseconds after the last move, so that what a kernel posts leaves at once; then, and at
// rest, it sleeps on the links' sockets, a fifth of a millisecond at most.
#pragma once
#include <chrono>

#include "engine/sleeper.h"
#include "engine/waiter.h"

namespace tutti::engine {

class Attendance {
 public:
  void moved() noexcept { waiter_.reset(); }
  // After a look that moved nothing. watch(sleeper) names the drivers. True when it slept.
  template <class Watch>
  bool pause(bool busy, Watch watch) noexcept {
    if (!busy)
      waiter_.reset();
    else if (waiter_.pause(); !waiter_.mayDoze())
      return false;
    watch(sleeper_);
    if (sleeper_.sleep()) waiter_.reset();  // what came is answered soon
    sleeper_.rise();
    return true;
  }

 private:
  Crowd crowd_;
  Waiter waiter_{false, crowd_};
  Sleeper sleeper_{std::chrono::microseconds(200)};
};

}  // namespace tutti::engine
