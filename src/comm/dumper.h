// Writes communicators' records (comm/dump.h) in the background, into TUTTI_DUMP_DIR: of each that fails, also when its
// rank makes no call meanwhile, and of all that live when the process gets SIGUSR2. Without that directory nothing of
// this exists: no thread, no signal handler.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace tutti::comm {

class Communicator;

// One of a process, since a signal is: it knows of every communicator that has a directory.
class Dumper {
 public:
  // The handler for SIGUSR2 is set when the first is added, unless the program has one of its own.
  static void add(const std::shared_ptr<Communicator>& communicator);
  // Queues one record; what is queued is written before the process ends in good order. Any thread, never blocks.
  static void request(std::shared_ptr<const Communicator> communicator, std::string why);

 private:
  static Dumper& instance();
  Dumper();
  ~Dumper();
  void work();
  void queueAll();
  void queueFailed();
  void writeQueued(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  bool ending_ = false;
  std::vector<std::weak_ptr<const Communicator>> living_;
  std::deque<std::pair<std::shared_ptr<const Communicator>, std::string>> queue_;
  UniqueFd wake_;  // an eventfd: all that a signal handler may safely touch
  uint32_t generation_;
  std::thread thread_;
};

}  // namespace tutti::comm
