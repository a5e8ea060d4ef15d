// Writes communicators' records (diagnose/dump.h) in the background, into TUTTI_DUMP_DIR: of each that fails, also when
// its rank makes no call meanwhile, and of all that live when the process gets SIGUSR2. Without that directory nothing
// of this exists: no thread, no signal handler.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "process/background_threads.h"
#include "process/fd.h"
#include "team/executor.h"

namespace tutti::comm {

// One of a process, since a signal is: it knows of every communicator that has a directory, by its executor.
class Dumper {
 public:
  static Dumper& instance();
  // Sets the handler for SIGUSR2, unless the program has one of its own: before a rank joins, since the signal would
  // end a process that asked for records. Where that cannot be, a warning says so. Any thread.
  void begin() noexcept;
  // Begins, and warns, once in a process, when nothing can be written to the directory.
  void add(const std::shared_ptr<Executor>& executor);
  // Queues one record; what is queued is written before the process ends in good order. Any thread, never blocks.
  void request(std::shared_ptr<Executor> executor, std::string why);

 private:
  class Writer;
  using Living = std::shared_ptr<Executor>;
  void start();
  void work();
  void end();
  std::vector<Living> living();
  void queue(Living executor, std::string why);
  void queueAll();
  void queueFailed();
  void lookRound(bool& signalled) noexcept;
  void writeQueued(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // guards what follows; comes before that of the background threads
  bool ending_ = false;
  std::vector<std::weak_ptr<Executor>> living_;
  std::deque<std::pair<Living, std::string>> queue_;
  UniqueFd wake_;  // an eventfd: all that a signal handler may safely touch
};

}  // namespace tutti::comm
