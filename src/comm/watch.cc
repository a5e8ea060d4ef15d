#include "comm/watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/communicator.h"

namespace tutti::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstQuestion(100), kLongestPause(5'000);
// What a rank sent before it left is here, unless it comes over a network: there the end of the stream says that
// nothing more comes, and only a network that has been silent for the heartbeat's time is not waited for.
constexpr milliseconds kPauseAfterLeaving(200);
constexpr int kTimesGone = 3;
// After its deadline a call asks everyone, if they are not too many, and gives them so long to answer.
constexpr milliseconds kCensusTime(500);
constexpr int kMostAsked = 256;

}  // namespace

Error mismatch(const std::string& here, const std::string& callHere, const std::string& there,
               const std::string& callThere) {
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("calls do not match: {} is in {}, {} is in {}. All ranks must make the same calls, with the "
                           "same counts, types, operators and roots, in the same order",
                           here, callHere, there, callThere));
}

Watch::Watch(Communicator& communicator, const Call& call, uint64_t number, bool blocking)
    : communicator_(communicator),
      call_(call),
      number_(number),
      blocking_(blocking),
      deadline_(Deadline::in(communicator.config().operationTimeout)),
      nextQuestion_(Clock::now() + kFirstQuestion),
      pause_(kFirstQuestion) {}

void Watch::look(int waitingFor, uint64_t progress, bool overNetwork, const std::function<std::string()>& waits) {
  if (census_ || deadline_.passed()) return expire(waits);
  if (waitingFor < 0 || waitingFor == communicator_.rank()) return;
  if (progress != lastProgress_ || waitingFor != judgedRank_) {
    lastProgress_ = progress;
    judgedRank_ = waitingFor;
    judged_ = communicator_.answersOf(waitingFor);
    timesGone_ = 0;
    const auto heartbeat = communicator_.config().heartbeat;
    mayStillCome_ = !overNetwork             ? Deadline::in(milliseconds(0))
                    : heartbeat.count() == 0 ? Deadline::never()
                                             : Deadline::in(heartbeat);
  }
  judge(waitingFor);
  if (Clock::now() < nextQuestion_) return;
  pause_ = timesGone_ > 0 ? kPauseAfterLeaving : std::min<Clock::duration>(2 * pause_, kLongestPause);
  nextQuestion_ = Clock::now() + pause_;
  ask(waitingFor);
}

void Watch::ask(int rank) {
  communicator_.ask(rank, {lineOf(call_), static_cast<uint32_t>(number_), communicator_.rank()});
}

// Of the rank that is waited for, and only by answers that came while the call stood still.
void Watch::judge(int rank) {
  const auto answer = communicator_.lastAnswer(rank);
  if (!answer || answer->count == judged_) return;
  judged_ = answer->count;
  if (answer->left && ++timesGone_ == 1) nextQuestion_ = Clock::now();
  const auto said = decodeWhereabouts(answer->body);
  if (said && said->asked == static_cast<uint32_t>(number_)) {
    compare(rank, *said);
    findDeadlock(rank, *said);
  }
  if (timesGone_ < kTimesGone || !mayStillCome_.passed()) return;
  throw Error(ErrorCode::kRemote,
              fmt::format("{} has left{}, but {} on rank {} still waits for it: it has made fewer calls than this rank",
                          communicator_.rankName(rank),
                          said && said->last ? " after " + describe(said->last->call) : std::string(),
                          call_.describe(number_), communicator_.rank()));
}

void Watch::compare(int rank, const Whereabouts& said) const {
  const auto mine = call_.fingerprint(number_);
  if (call_.collective == Collective::kSendRecv || !said.same || said.same->call == mine) return;
  throw mismatch(communicator_.rankName(communicator_.rank()), describe(mine), communicator_.rankName(rank),
                 describe(said.same->call));
}

// This rank waits in a call whose counterpart the other has not made, and that one waits here for one that this rank
// has not made: neither caller can make it any more. (A call on a stream leaves its caller free, and proves nothing.)
void Watch::findDeadlock(int rank, const Whereabouts& said) const {
  if (!blocking_ || said.counterpart || !said.stuck) return;
  const auto& [line, theirs] = *said.stuck;
  const CallLine needed = counterpartOf(line);
  const int self = communicator_.rank();
  if (communicator_.recorder().begun(needed, needed == CallLine::kCollective ? -1 : rank, theirs.call.operation))
    return;
  const std::string their = line == CallLine::kCollective ? describe(theirs.call)
                                                          : describeMessage(line == CallLine::kSend, self, theirs.call);
  throw mismatch(communicator_.rankName(self), call_.describe(number_), communicator_.rankName(rank), their);
}

void Watch::expire(const std::function<std::string()>& waits) {
  const bool collective = call_.collective != Collective::kSendRecv;
  if (!census_) {
    const int asked = collective && communicator_.size() <= kMostAsked ? communicator_.size() : 0;
    for (int rank = 0; rank < asked; ++rank) {
      counts_.push_back(communicator_.answersOf(rank));
      if (rank != communicator_.rank()) ask(rank);
    }
    census_ = Deadline::in(kCensusTime);
  }
  for (int rank = 0; rank < static_cast<int>(counts_.size()); ++rank) {
    const bool silent = rank != communicator_.rank() && communicator_.answersOf(rank) == counts_[size_t(rank)];
    if (silent && !census_->passed()) return;
  }
  throw Error(ErrorCode::kTimeout,
              fmt::format("{} did not finish within {} ms: rank {} waits for {}{}", call_.describe(number_),
                          communicator_.config().operationTimeout.count(), communicator_.rank(), waits(), census()));
}

std::string Watch::positionOf(int rank) const {
  const auto answer = communicator_.lastAnswer(rank);
  if (!answer || answer->count == counts_[size_t(rank)]) return "does not answer";
  const auto said = decodeWhereabouts(answer->body);
  if (said && said->same) {
    std::string text =
        said->same->call == call_.fingerprint(number_) ? "is in it" : "is in " + describe(said->same->call);
    if (said->same->state == CallState::kDone) return "is done with it";
    if (said->same->waitingFor >= 0) text += fmt::format(", waiting for rank {}", said->same->waitingFor);
    return text;
  }
  std::string text = answer->left ? "has left without it" : "has not come to it";
  if (said && said->last) text += fmt::format(" (its last call: {})", describe(said->last->call));
  return text;
}

std::string Watch::census() const {
  constexpr size_t kMostNamed = 16;
  if (counts_.empty()) return "";
  std::vector<std::string> absent;
  int present = 1;
  for (int rank = 0; rank < static_cast<int>(counts_.size()); ++rank) {
    if (rank == communicator_.rank()) continue;
    const std::string position = positionOf(rank);
    if (position.starts_with("is in it") || position.starts_with("is done"))
      ++present;
    else
      absent.push_back(fmt::format("{} {}", communicator_.rankName(rank), position));
  }
  std::string text = fmt::format("; {} of {} ranks have come", present, communicator_.size());
  for (size_t i = 0; i < absent.size() && i < kMostNamed; ++i) text += "; " + absent[i];
  if (absent.size() > kMostNamed) text += fmt::format("; and {} more", absent.size() - kMostNamed);
  return text;
}

}  // namespace tutti::comm
