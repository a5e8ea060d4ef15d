// Which ranks of a communicator are in this process: what a rank says of its process is its own word.
#pragma once
#include <memory>
#include <mutex>
#include <set>

#include "wire/messages.h"

namespace tutti::control {

// Any thread.
class LocalRanks {
 public:
  // Those with this table of all ranks, which no other communicator has: each rank drew a key for it. The same object
  // for all of them in this process, as long as any has it.
  static std::shared_ptr<LocalRanks> of(const Digest& table);

  void add(int rank);
  bool has(int rank) const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::set<int> ranks_;
};

}  // namespace tutti::control
