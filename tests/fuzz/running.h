// A thread of the library's - a rank's control plane, a root, a listener - among peers that this thread plays. Linked
// are running_thread.cc, where it is a thread, or running_turns.cc, where it takes its turns on this one: whenever this
// one waits, and never beside it, so that nobody waits for the other to be given a processor.
#pragma once
#include <chrono>
#include <memory>
#include <utility>

#include "base/deadline.h"
#include "process/background_threads.h"

namespace tutti::fuzz {

class Running {
 public:
  explicit Running(Service& kept);
  ~Running();  // tells it to end, and waits for that
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool over() const noexcept;
  // Lets it do what it has to do by now; a thread does that by itself.
  void goOn();
  // A moment's wait for what it may bring.
  void rest();
  // Once an input.
  bool takesAFlood() noexcept { return !std::exchange(flooded_, true); }

  class Way;

 private:
  bool flooded_ = false;
  std::unique_ptr<Way> way_;
};

// poll() for one descriptor. Whoever plays a peer waits here and nowhere else.
bool awaitEvents(int fd, short events, Deadline deadline);
// For what comes at once or not at all.
Deadline soon();

}  // namespace tutti::fuzz
