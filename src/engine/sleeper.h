// Where a thread sleeps when it has waited long: on the bells of its communicators, or, where sockets carry some of
// what it waits for, on those and on the ears of the bells. Never for more than a millisecond, unless told otherwise:
// it has a deadline to look at, and a ring may be missed.
#pragma once
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "link/ear.h"
#include "link/link.h"

namespace tutti::engine {

class Sleeper {
 public:
  explicit Sleeper(std::chrono::nanoseconds longest = std::chrono::milliseconds(1)) noexcept
      : longestNs_(static_cast<long>(longest.count())) {}
  ~Sleeper() { rise(); }
  // What could wake the thread, each once however often it is named. Bells come first, then the caller looks at its
  // lanes once more, then come the drivers. `ear`: null where the bell has none. `patient`: see link::Wakeups. Without
  // memory for it, it is left out.
  void hear(link::Doorbell& bell, link::Ear* ear, bool patient = false) noexcept;
  void watch(link::Driver& driver) noexcept;
  // Until there may be news. Drivers that have some are driven: a lane looks only at the link that it waits for, and
  // what nobody takes would end the next sleep at once. Returns whether something ended the sleep before its time.
  bool sleep() noexcept;
  // Forgets all of it.
  void rise() noexcept;

 private:
  struct Heard {
    link::Doorbell* bell;
    link::Ear* ear;
    uint32_t rings;  // when last looked
    bool patient;
  };
  bool sleepOnBells() const noexcept;
  bool sleepOnSockets() noexcept;
  bool sleepBlind() const noexcept;
  bool woken(long result) const noexcept;
  bool serve() noexcept;

  long longestNs_;  // below a second
  std::vector<Heard> bells_;
  std::vector<link::Driver*> drivers_;
  std::vector<pollfd> sockets_;  // of the drivers and of the ears, in this order
};

}  // namespace tutti::engine
