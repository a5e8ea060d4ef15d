// The groups of this process, for who asks what all of them have done.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "numbers.h"

namespace tutti_torch {

class Backend;

struct GroupNumbers {
  std::string name, description;  // as torch.distributed has them
  Numbers numbers;
};

class Groups {
 public:
  // A child made by fork begins with none.
  static Groups& ofThisProcess();

  void add(const Backend& backend);
  // Waits for who reads it. Once more does no harm.
  void remove(const Backend& backend) noexcept;
  // Any thread. In the order in which they were made.
  std::vector<GroupNumbers> read() const;

 private:
  mutable std::mutex mutex_;  // guards what follows, and that they live
  std::vector<const Backend*> backends_;
};

}  // namespace tutti_torch
