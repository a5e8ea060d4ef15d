// Jobs in which a rank of this process has met all others, or whose root has brought them together here: who joins one
// of them again is told so at once. Of those that were long ago, nothing is known any more.
#pragma once
#include <cstdint>
#include <deque>
#include <mutex>

namespace tutti::control {

// One of a process. Any thread.
class UsedJobs {
 public:
  static UsedJobs& instance();
  void note(uint64_t job);
  bool contains(uint64_t job);

 private:
  std::mutex mutex_;           // guards what follows
  std::deque<uint64_t> jobs_;  // the latest last
};

}  // namespace tutti::control
