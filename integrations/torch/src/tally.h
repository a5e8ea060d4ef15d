// What a group has been asked for, counted by operation. Any thread.
#pragma once
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "work_about.h"

namespace tutti_torch {

// Names of operations are those of the package tutti: "all_reduce", whichever of PyTorch's calls it was.
struct Count {
  uint64_t operations = 0, bytes = 0;  // bytes of this rank's tensors; of sparse ones none
  double waitSeconds = 0;              // that callers have waited in the call, or for its work
};

class Tally {
 public:
  void called(const About& about);
  void waited(c10d::OpType type, std::chrono::steady_clock::time_point since);
  std::map<std::string, Count> read() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, Count> counts_;
};

}  // namespace tutti_torch
