// Runs the background parts of this process - roots, each rank's part of a tree, joins under way, the writer of
// records - on threads of their own, and sees to it that they have ended when the process does.
#pragma once
#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

namespace tutti {

class Service {
 public:
  virtual ~Service() = default;
  // An exception ends the thread, and is logged.
  virtual void run() = 0;
  // The process is ending: come to an end in good order, soon. Any thread.
  virtual void hurry() = 0;
  // Come to an end now. Any thread.
  virtual void halt() = 0;
};

// One of a process: what runs here outlives who started it. Any thread.
class BackgroundThreads {
 public:
  static BackgroundThreads& instance();
  // Runs `service` on a new thread and lets go of it there. Throws Error when no thread can be had, and when the
  // process is ending.
  void start(std::shared_ptr<Service> service);
  // Ends all, and starts nothing any more; called when the process ends.
  void finish();

 private:
  struct Entry {
    std::thread thread;
    std::weak_ptr<Service> service;
    bool finished = false;
  };
  void run(Entry& entry, std::shared_ptr<Service> service);
  // Joins them when it goes, whatever happens meanwhile: without the mutex, which their last step takes.
  struct Finished {
    std::list<Entry> entries;
    ~Finished();
  };
  void reap(Finished& finished) noexcept;
  void tellAll(void (Service::*what)());
  void awaitAll(std::chrono::milliseconds atMost);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::list<Entry> entries_;
  bool ending_ = false;
};

}  // namespace tutti
