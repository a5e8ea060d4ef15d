// The one object of its kind that a process has, for what hangs on the process: its threads, its handler of a signal.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "process/fork.h"

namespace tutti {

// Made when first asked for, and never destroyed: threads of the program may use it while the process ends. A child
// made by fork gets a new one, since it has none of its parent's threads, and may have inherited a lock taken.
// Any thread. Two threads may each begin to make one, and then one is thrown away: T's constructor does nothing beyond
// the object.
template <class T>
T& ofThisProcess() {
  struct Made {
    const uint32_t generation = fork::generation();
    T object;
    Made* inherited = nullptr;  // its parent's: out of use, but no leak
  };
  static constinit std::atomic<Made*> made{nullptr};
  // Acquire: pairs with the exchange below, by which another thread may have put its own here.
  Made* now = made.load(std::memory_order_acquire);
  if (now != nullptr && now->generation == fork::generation()) return now->object;
  auto fresh = std::make_unique<Made>();
  fresh->inherited = now;
  if (made.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->object;
  return now->object;
}

}  // namespace tutti
