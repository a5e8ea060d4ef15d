#include "diagnose/stall_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/deadline_names.h"
#include "diagnose/neighbours.h"
#include "process/log.h"
#include "team/mismatch.h"

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

std::string describe(const Position& position) { return comm::describe(position.call, position.tag); }

Error countsMismatch(const std::string& call, const std::string& sender, uint64_t sent, const std::string& receiver,
                     uint64_t expected) {
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("counts do not match in {}: {} sends {} elements to {}, which expects {}", call, sender,
                           sent, receiver, expected));
}

}  // namespace

StallDetector::StallDetector(Team& team, const Call& call, uint64_t number, bool blocking)
    : team_(team),
      call_(call),
      number_(number),
      blocking_(blocking),
      timeout_(call.timeout.count() > 0 ? call.timeout : team.config().operationTimeout),
      deadline_(Deadline::in(timeout_)),
      nextQuestion_(Clock::now() + kFirstQuestion),
      pause_(kFirstQuestion) {}

void StallDetector::look(int waitingFor, uint64_t progress, bool overNetwork,
                         const std::function<std::string()>& waits) {
  if (census_ || deadline_.passed()) return expire(waits);
  if (waitingFor < 0 || waitingFor == team_.rank()) return;
  if (progress != lastProgress_ || waitingFor != judgedRank_) {
    lastProgress_ = progress;
    judgedRank_ = waitingFor;
    judged_ = answersOf(waitingFor);
    timesGone_ = 0;
    const auto heartbeat = team_.config().heartbeat;
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

void StallDetector::ask(int rank) {
  team_.plane().ask(rank, encode(question()));
  unanswered_ = true;
}

Question StallDetector::question() const noexcept {
  return {lineOf(call_), static_cast<uint32_t>(number_), team_.rank()};
}

uint64_t StallDetector::answersOf(int rank) const {
  const auto answer = team_.plane().lastAnswer(rank);
  return answer ? answer->count : 0;
}

std::optional<StateReply> StallDetector::read(int rank, const control::Answer& answer) const try {
  return decodeStateReply(answer.body);
} catch (const Error& error) {
  throw Error(error.code(),
              fmt::format("{} answered what cannot be understood: {}", team_.rankName(rank), error.what()));
}

// Of the rank that is waited for, and only by answers that came while the call stood still.
void StallDetector::judge(int rank) {
  const auto answer = team_.plane().lastAnswer(rank);
  if (!answer || answer->count == judged_) return;
  judged_ = answer->count;
  const auto said = read(rank, *answer);
  if (said && said->asked != question()) return askAgain();
  unanswered_ = false;
  if (answer->left && ++timesGone_ == 1) nextQuestion_ = Clock::now();
  if (said) {
    compare(rank, *said);
    compareCounts(rank, *said);
    comparePersistence(rank, *said);
    findDeadlock(rank, *said);
    findCrossing(rank, *said);
  }
  if (timesGone_ < kTimesGone || !mayStillCome_.passed()) return;
  throw leftWithout(rank, said);
}

// A call beside this one has asked the same rank, and its answer has perhaps covered the one to this call. Each of the
// two asks again after a time of its own: at once after each other, that would repeat itself.
void StallDetector::askAgain() {
  constexpr milliseconds kApart(10);
  if (!unanswered_) return;
  nextQuestion_ = std::min(nextQuestion_, Clock::now() + kApart * (1 + static_cast<int>(lineOf(call_))));
}

// Nothing of what it had sent can be missing any more; so, if it does not say itself that it has made its part, it has
// not.
Error StallDetector::leftWithout(int rank, const std::optional<StateReply>& said) const {
  const bool made = said && said->counterpart;
  return departure(rank, said,
                   made ? "it has made its part of this call, and not all of that has come"
                        : "it has made fewer calls than this rank");
}

Error StallDetector::departure(int rank, const std::optional<StateReply>& said, const char* why) const {
  const auto answer = team_.plane().lastAnswer(rank);
  return Error(ErrorCode::kRemote,
               fmt::format("{} {}{}, but {} on rank {} still waits for it: {}", team_.rankName(rank),
                           answer && answer->ended ? control::kEndedWithProcess : "has left",
                           said && said->last ? " after " + describe(*said->last) : std::string(),
                           call_.describe(number_), team_.rank(), why));
}

void StallDetector::hurry() noexcept {
  nextQuestion_ = Clock::now();
  pause_ = kFirstQuestion;
}

void StallDetector::doubt(int rank) {
  if (!std::exchange(doubts_, true))
    judged_ = answersOf(rank);
  else if (Clock::now() < nextQuestion_)
    return;
  nextQuestion_ = Clock::now() + kFirstQuestion;
  ask(rank);
}

std::optional<Error> StallDetector::departureOf(int rank) const {
  const auto answer = team_.plane().lastAnswer(rank);
  if (!answer || answer->count == judged_ || !answer->left) return std::nullopt;
  const auto said = read(rank, *answer);
  if (said && (said->asked != question() || said->counterpart)) return std::nullopt;
  // Its connection may have ended before all had come: without an answer nobody knows.
  if (!said) return departure(rank, said, "it did not say whether it has made its part of this call");
  return leftWithout(rank, said);
}

void StallDetector::compare(int rank, const StateReply& said) const {
  if (call_.collective == Collective::kSendRecv || !said.same) return;
  const auto own = team_.recorder().collective(static_cast<uint32_t>(number_));
  const link::Fingerprint mine = own ? own->fingerprint : call_.fingerprint(number_), theirs = said.same->call;
  const bool known = mine.planned() && theirs.planned();
  const std::string self = team_.rankName(team_.rank()), peer = team_.rankName(rank);
  if (mine.call() == theirs.call() && call_.tag != said.same->tag)
    throw tagMismatch(comm::describe(mine), self, call_.tag, peer, said.same->tag);
  if (known ? mine == theirs : mine.call() == theirs.call()) return;
  throw mismatch(self, mine, peer, theirs, call_.tag);
}

// What one of a pair sends the other must expect: the two may differ from all other pairs, and from what goes the other
// way.
void StallDetector::compareCounts(int rank, const StateReply& said) const {
  const auto found = call_.countsWith(team_.rank(), rank);
  if (!found || !said.counts) return;
  const Recorder::PairCounts own = *found;
  const std::string self = team_.rankName(team_.rank()), peer = team_.rankName(rank);
  if (own.expected != said.counts->sent)
    throw countsMismatch(call_.describe(number_), peer, said.counts->sent, self, own.expected);
  if (own.sent != said.counts->expected)
    throw countsMismatch(call_.describe(number_), self, own.sent, peer, said.counts->expected);
}

void StallDetector::comparePersistence(int rank, const StateReply& said) const {
  if (!said.onlyReadies || *said.onlyReadies == call_.onlyReadies) return;
  const std::string self = team_.rankName(team_.rank()), peer = team_.rankName(rank);
  throw persistenceMismatch(call_.describe(number_), call_.onlyReadies ? self : peer, call_.onlyReadies ? peer : self);
}

// This rank waits in a call whose counterpart the other has not made, and that one waits here for one that this rank
// has not made: neither caller can make it any more. (A call on a stream leaves its caller free, and proves nothing.)
void StallDetector::findDeadlock(int rank, const StateReply& said) const {
  if (!blocking_ || said.counterpart) return;
  const int self = team_.rank();
  if (said.split > team_.recorder().splitsBegun())  // one for which this rank is waited for
    throw mismatch(team_.rankName(self), call_.describe(number_), team_.rankName(rank), std::string("tuttiCommSplit"));
  if (!said.stuck) return;
  const auto& [line, theirs] = *said.stuck;
  const CallLine needed = counterpartOf(line);
  if (team_.recorder().begun(needed, needed == CallLine::kCollective ? -1 : rank, theirs.call.operation)) return;
  const std::string their = line == CallLine::kCollective
                                ? describe(theirs)
                                : describeMessage(line == CallLine::kSend, self, theirs.call, theirs.tag);
  throw mismatch(team_.rankName(self), call_.describe(number_), team_.rankName(rank), their);
}

// This rank waits here for one whose caller waits on another communicator, for a call that this rank has not made
// there. Other threads of the two processes might still make the calls: so it is no error, but said now, and at the
// deadline.
void StallDetector::findCrossing(int rank, const StateReply& said) {
  if (!blocking_ || said.counterpart || !said.elsewhere || !crossing_.empty()) return;
  const auto other = Neighbours::instance().owing(*said.elsewhere);
  if (!other || other.get() == &team_) return;
  const auto& [line, theirs] = said.elsewhere->stuck;
  const std::string their = line == CallLine::kCollective
                                ? describe(theirs)
                                : describeMessage(line == CallLine::kSend, theirs.waitingFor, theirs.call, theirs.tag);
  crossing_ = fmt::format(
      "{} waits in {} on communicator {:016x} for {}, which waits in {} on communicator {:016x} for {}: all ranks must "
      "use their communicators in the same order, or call from threads of their own",
      team_.rankName(team_.rank()), call_.describe(number_), team_.id(), team_.rankName(rank), their, other->id(),
      other->rankName(other->rank()));
  log::warn("{}", crossing_);
}

void StallDetector::expire(const std::function<std::string()>& waits) {
  const bool collective = call_.collective != Collective::kSendRecv;
  if (!census_) {
    const int asked = collective && team_.size() <= kMostAsked ? team_.size() : 0;
    for (int rank = 0; rank < asked; ++rank) {
      asked_.push_back({answersOf(rank), std::nullopt});
      if (rank != team_.rank()) ask(rank);
    }
    census_ = Deadline::in(kCensusTime);
  }
  for (int rank = 0; rank < static_cast<int>(asked_.size()); ++rank) {
    takeAnswer(rank);
    if (isSilent(rank) && !census_->passed()) return;
  }
  // The answers to these questions may be the first that tell it.
  if (const auto answer = judgedRank_ < 0 ? std::nullopt : team_.plane().lastAnswer(judgedRank_))
    if (const auto said = read(judgedRank_, *answer); said && said->asked == question())
      findCrossing(judgedRank_, *said);
  throw Error(ErrorCode::kTimeout,
              fmt::format("{} did not finish within {} ms, the {} of rank {}, which waits for {}{}{}{}",
                          call_.describe(number_), timeout_.count(),
                          call_.timeout.count() > 0 ? kCallDeadline : kOperationDeadline, team_.rank(), waits(),
                          census(), crossing_.empty() ? "" : ". ", crossing_));
}

// What comes may be of another call: of an earlier question, or of a call beside this one, whose answer has covered
// this one's. Then it is asked again.
void StallDetector::takeAnswer(int rank) {
  Asked& asked = asked_[size_t(rank)];
  const auto answer = team_.plane().lastAnswer(rank);
  if (rank == team_.rank() || asked.told || !answer || answer->count == asked.count) return;
  asked.count = answer->count;
  const auto said = read(rank, *answer);
  if (!said || said->asked == question())
    asked.told = answer;
  else
    ask(rank);
}

bool StallDetector::isSilent(int rank) const { return rank != team_.rank() && !asked_[size_t(rank)].told; }

int StallDetector::silentRelayTo(int rank) const {
  const auto way = team_.plane().wayTo(rank);
  const auto found = std::ranges::find_if(way, [this](int relay) { return isSilent(relay); });
  return found == way.end() ? -1 : *found;
}

std::string StallDetector::positionOf(int rank) const {
  const auto& answer = asked_[size_t(rank)].told;
  if (isSilent(rank)) {
    const int relay = silentRelayTo(rank);
    return relay < 0 ? "does not answer" : fmt::format("cannot be asked, for rank {} passes nothing on", relay);
  }
  const auto said = read(rank, *answer);
  if (said && said->same) {
    std::string text =
        said->same->call.call() == call_.fingerprint(number_) ? "is in it" : "is in " + describe(*said->same);
    if (said->same->state == CallState::kDone) return "is done with it";
    if (said->same->waitingFor >= 0) text += fmt::format(", waiting for rank {}", said->same->waitingFor);
    return text;
  }
  if (said && said->counterpart) return "has come to it and made many calls since";
  std::string text = answer->ended              ? "left without it (its process ended)"
                     : answer->left             ? "has left without it"
                     : said && said->split != 0 ? "is in tuttiCommSplit"
                                                : "has not come to it";
  if (said && said->last) text += fmt::format(" (its last call: {})", describe(*said->last));
  return text;
}

std::string StallDetector::census() const {
  constexpr size_t kMostNamed = 16;
  if (asked_.empty()) return "";
  std::vector<std::string> absent;
  int present = 1;
  bool all = true;
  for (int rank = 0; rank < static_cast<int>(asked_.size()); ++rank) {
    if (rank == team_.rank()) continue;
    const std::string position = positionOf(rank);
    all = all && !isSilent(rank);
    if (position.starts_with("is in it") || position.starts_with("is done") || position.starts_with("has come"))
      ++present;
    else
      absent.push_back(fmt::format("{} {}", team_.rankName(rank), position));
  }
  std::string text = fmt::format("; {}{} of {} ranks have come", all ? "" : "at least ", present, team_.size());
  for (size_t i = 0; i < absent.size() && i < kMostNamed; ++i) text += "; " + absent[i];
  if (absent.size() > kMostNamed) text += fmt::format("; and {} more", absent.size() - kMostNamed);
  return text;
}

}  // namespace tutti::comm
