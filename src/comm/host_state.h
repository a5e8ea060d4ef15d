// What the calls of a communicator on host memory share: its links, its plans, and the queues in which they wait.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/plans.h"
#include "comm/ticket_queue.h"
#include "diagnose/trace.h"
#include "engine/waiter.h"
#include "team/call.h"
#include "team/links.h"
#include "team/team.h"

namespace tutti::comm {

class HostState {
 public:
  explicit HostState(Team& team);

  Team& team() noexcept { return team_; }
  Links& links() noexcept { return links_; }
  const Links& links() const noexcept { return links_; }
  Plans& plans() noexcept { return plans_; }
  const Plans& plans() const noexcept { return plans_; }
  TicketQueue& queueFor(const Call& call) noexcept {
    if (call.collective != Collective::kSendRecv) return collectives_;
    return (call.sends ? sends_ : receives_)[static_cast<size_t>(call.root)];
  }
  engine::Crowd& crowd() noexcept { return crowd_; }
  Trace* trace() const noexcept { return trace_.get(); }  // null: none is asked for
  bool idle() const noexcept;                             // nothing queued or running
  uint64_t operations() const noexcept;

 private:
  Team& team_;
  Links links_;
  engine::Crowd crowd_;
  Plans plans_;
  TicketQueue collectives_;
  std::vector<TicketQueue> sends_, receives_;  // by peer
  const std::unique_ptr<Trace> trace_;
};

}  // namespace tutti::comm
