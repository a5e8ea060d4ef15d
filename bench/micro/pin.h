// Keeps a thread on one processor: the micro-benchmarks of two cores say on which.
#pragma once
#include <sched.h>

namespace tutti {

// The calling thread, on the `which`th of the processors that it may run on, from 0; nothing where there are fewer.
inline void pinTo(int which) {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set) || which-- != 0) continue;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    ::sched_setaffinity(0, sizeof set, &set);
    return;
  }
}

}  // namespace tutti
