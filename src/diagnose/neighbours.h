// The communicators of this process, for a call that stands still because its callers use two communicators in
// different orders: each rank waits in a call on one for a call on the other, and a stall detector sees the calls of
// its own communicator only. Known here is no more than who there is; what they do stands in their flight recorders.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "diagnose/state_reply.h"
#include "team/team.h"

namespace tutti::comm {

// One of a process, since a caller is. Any thread.
class Neighbours {
 public:
  static Neighbours& instance();
  void add(const std::shared_ptr<const Team>& team);
  // Where the caller of that communicator waits in another one.
  std::optional<Elsewhere> elsewhere(const Recorder& recorder);
  // The communicator on which this process has not made the call that `there` waits for, if the calling thread is the
  // one that calls there.
  std::shared_ptr<const Team> owing(const Elsewhere& there);

 private:
  struct Neighbour {
    uint64_t id;
    int rank;
    // Where answers are made nothing may hold a communicator: the last to let go of it ends the answering thread.
    std::weak_ptr<const Recorder> recorder;
    std::weak_ptr<const Team> team;
  };

  std::mutex mutex_;  // guards what follows
  std::vector<Neighbour> members_;
};

}  // namespace tutti::comm
