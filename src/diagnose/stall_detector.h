// What a call does while it is stuck: it asks the rank that it waits for where that one is, so that a mismatch of
// calls, or a rank that has left, ends the wait with an error that names both calls instead of a hang; and it sees to
// the operation's deadline, and says at its end who had come and who had not.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "diagnose/state_reply.h"
#include "team/call.h"
#include "team/team.h"

namespace tutti::comm {

class StallDetector {
 public:
  // `blocking`: the caller waits in this call, and makes no other meanwhile.
  StallDetector(Team& team, const Call& call, uint64_t number, bool blocking);

  // Looks at the answers, and asks again. `overNetwork`: what was sent may be on its way for long. `waits` says in
  // words what the call waits for. Throws Error: kInvalidUsage for calls that do not match, kRemote for a rank that has
  // left, kTimeout. Never blocks; call it every millisecond or so.
  void look(int waitingFor, uint64_t progress, bool overNetwork, const std::function<std::string()>& waits);

  // The data connection to that rank has ended: asks it, now and then, whether it is still there. A rank that leaves
  // closes its connections a moment before it says so.
  void doubt(int rank);
  // The next look asks, however long ago the last question was: whoever calls this does not wait for long.
  void hurry() noexcept;
  // Later: what is wrong, if it has answered that it left without the counterpart of this call.
  std::optional<Error> departureOf(int rank) const;

 private:
  using Clock = std::chrono::steady_clock;
  Question question() const noexcept;
  void judge(int rank);
  void askAgain();
  void ask(int rank);
  uint64_t answersOf(int rank) const;
  std::optional<StateReply> read(int rank, const control::Answer& answer) const;
  Error leftWithout(int rank, const std::optional<StateReply>& said) const;
  Error departure(int rank, const std::optional<StateReply>& said, const char* why) const;
  void compare(int rank, const StateReply& said) const;
  void comparePersistence(int rank, const StateReply& said) const;
  void compareCounts(int rank, const StateReply& said) const;
  void findDeadlock(int rank, const StateReply& said) const;
  void findCrossing(int rank, const StateReply& said);
  void expire(const std::function<std::string()>& waits);
  std::string census() const;
  std::string positionOf(int rank) const;
  bool isSilent(int rank) const;
  void takeAnswer(int rank);
  int silentRelayTo(int rank) const;  // -1: none

  Team& team_;
  const Call& call_;
  uint64_t number_;
  bool blocking_;
  std::chrono::milliseconds timeout_;
  Deadline deadline_;
  Clock::time_point nextQuestion_;
  Clock::duration pause_;
  uint64_t judged_ = 0;  // answers of that rank which have been looked at
  int judgedRank_ = -1;
  bool doubts_ = false;
  bool unanswered_ = false;  // the last question
  uint64_t lastProgress_ = 0;
  Deadline mayStillCome_ = Deadline::never();
  int timesGone_ = 0;               // answers in a row that said it has left, without progress in between
  std::string crossing_;            // how this call and one on another communicator seem to wait for each other
  std::optional<Deadline> census_;  // after the deadline: until when answers are waited for
  struct Asked {
    uint64_t count = 0;                   // answers of that rank before
    std::optional<control::Answer> told;  // its first of this call
  };
  std::vector<Asked> asked_;  // then, by rank
};

}  // namespace tutti::comm
