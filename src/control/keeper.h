// Runs the background parts of this process - roots, and each rank's part of a tree - on threads of their own, and sees
// to it that they have ended when the process does.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "base/fork.h"

namespace tutti::control {

class Kept {
 public:
  virtual ~Kept() = default;
  virtual void run() = 0;
  // The process is ending: come to an end in good order, soon. Any thread.
  virtual void hurry() = 0;
  // Come to an end now. Any thread.
  virtual void halt() = 0;
};

// The one object of the process that outlives a communicator, since leaving must not block (see Plane).
class Keeper {
 public:
  static Keeper& instance();
  // Runs `kept` on a new thread and lets go of it there. Throws Error when no thread can be had.
  void start(std::shared_ptr<Kept> kept);

 private:
  struct Entry {
    std::thread thread;
    std::weak_ptr<Kept> kept;
    bool finished = false;
  };
  // What belongs to one process. A child made by fork has none of the threads, and may have inherited the mutex locked:
  // it begins with a new one, and never touches its parent's.
  struct Threads {
    const uint32_t generation = fork::generation();
    std::mutex mutex;
    std::condition_variable changed;
    std::list<Entry> entries;
  };
  Keeper() : threads_(new Threads) {}
  ~Keeper();
  Threads& threads();
  static void run(Threads& threads, Entry& entry, std::shared_ptr<Kept> kept);
  static void reap(Threads& threads, std::list<Entry>& finished);
  static void tellAll(Threads& threads, void (Kept::*what)());

  std::atomic<Threads*> threads_;
};

}  // namespace tutti::control
