// The groups of this process, for who asks what all of them have done.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

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

  void add(const c10::intrusive_ptr<Backend>& backend);
  // Waits for who reads it. Once more does no harm.
  void remove(const Backend& backend) noexcept;
  // Any thread. In the order in which they were made.
  std::vector<GroupNumbers> read() const;

  // Before the interpreter ends: it ends threads that want its lock in the midst of what they do, and what tells of
  // operations may be about to run callbacks in Python. What of a group does not end in time (see
  // Backend::shutdown) is aborted.
  void endAll();

 private:
  struct Member {
    const Backend* backend;  // as long as it is in the list
    c10::weak_intrusive_ptr<c10d::Backend> kept;
  };
  mutable std::mutex mutex_;  // guards what follows, and that they live
  std::vector<Member> members_;
};

}  // namespace tutti_torch
