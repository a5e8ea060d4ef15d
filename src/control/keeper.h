// Runs the background parts of this process - roots, and each rank's part of a tree - on threads of their own, and sees
// to it that they have ended when the process does.
#pragma once
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

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
  Keeper();
  ~Keeper();
  void reap(std::list<Entry>& finished);
  void tellAll(void (Kept::*what)());

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Entry> entries_;
  int pid_;
};

}  // namespace tutti::control
