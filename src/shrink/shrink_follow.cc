// A survivor that looks for the one who leads the shrink, and does what that one says.
#include <algorithm>
#include <functional>

#include "job/parcel.h"
#include "shrink/shrink.h"

namespace tutti::control {
namespace {

// After a line to a leader that may still be there has closed.
constexpr std::chrono::milliseconds kPauseBeforeSeeking(10);
// A leader that does not answer for so long may be on a host that has gone, and so may be those behind it.
constexpr std::chrono::milliseconds kAnswerSoon(250);
constexpr int kLookAhead = 16;

void requireRanksOf(int size, const std::vector<int>& survivors) {
  const bool rising = std::ranges::adjacent_find(survivors, std::greater_equal()) == survivors.end();
  if (!rising || survivors.empty() || survivors.front() < 0 || survivors.back() >= size)
    throw Error(ErrorCode::kRemote, fmt::format("survivors that are no ranks of {} in their order", size));
}

}  // namespace

bool Shrink::leads() const noexcept { return call_ && leader_ == home_.rank(); }

void Shrink::seek() {
  if (!call_ || up_ || reach_) return;
  for (int rank = 0; rank < home_.rank(); ++rank)
    if (!gone_.contains(rank) && !leavesOut(rank)) return callLeader(rank);
  leader_ = home_.rank();
  leadOn();
}

void Shrink::callLeader(int rank) {
  leader_ = rank;
  reach_ = reach(
      rank, [this](std::shared_ptr<Line> line) { found(std::move(line)); },
      [this, rank](Text why) {
        reach_.reset();
        giveUp(rank, fmt::format("{} {}", describe(home_.who(rank)), why));
      });
  reactor_.cancel(lookAheadTimer_);
  lookAheadTimer_ = reactor_.after(kAnswerSoon, [this] { lookAhead(); });
}

// Waits for the next ones while it waits for this one, so that the patience for all of a host's ranks runs at once.
void Shrink::lookAhead() {
  if (!reach_) return;
  for (int rank = leader_ + 1, count = 0; rank < home_.rank() && count < kLookAhead; ++rank) {
    if (gone_.contains(rank) || leavesOut(rank) || callers_.contains(rank)) continue;
    ++count;
    if (!probes_.contains(rank)) probeOne(rank);
  }
  lookAheadTimer_ = reactor_.after(kAnswerSoon, [this] { lookAhead(); });
}

void Shrink::found(std::shared_ptr<Line> line) {
  reach_.reset();
  up_ = std::move(line);
  up_->expectRanks(home_.size(), home_.size());
  up_->forgetKeys();
  Line::Events events;
  events.frame = [this](Frame& frame) { onLeader(frame); };
  events.closed = [this](Text) { leaderGone(); };
  up_->setEvents(std::move(events));
  heartbeat_.watch(up_, [this, raw = up_.get(), rank = leader_](Text how) {
    if (raw == up_.get()) return giveUp(rank, fmt::format("{} {}", describe(home_.who(rank)), how));
    raw->close();
  });
  up_->send(Kind::kShrinkCall, encode(ownCall()));
}

void Shrink::onLeader(Frame& frame) try {
  switch (static_cast<Kind>(frame.type)) {
    case Kind::kShrinkWait:
      leaderSays_ = decodeWords(frame.payload);
      return;
    case Kind::kShrinkTry: {
      ShrinkTry proposal = decodeShrinkTry(frame.payload);
      requireRanksOf(home_.size(), proposal.survivors);
      proposal.id.secret = openFrom(home_.who(leader_).endpoint.key, home_.key(), proposal.id.job, proposal.parcel);
      return startTrial(std::move(proposal));
    }
    case Kind::kShrinkAgain:
      return drop(trial_);
    case Kind::kShrinkCommit:
      return commit(Reader(frame.payload).value<uint64_t>());
    case Kind::kShrinkEnd: {
      const Refusal refusal = decodeRefusal(frame.payload);
      return end(refusal.code, refusal.text);
    }
    case Kind::kShrinkDiffer: {
      const ShrinkDiffer differ = decodeShrinkDiffer(frame.payload);
      return roundOver(differ.round, differ.text, false);
    }
    case Kind::kShrinkGaveUp:
      return end(ErrorCode::kRemote, decodeRefusal(frame.payload).text);
    default:
      throw Error(ErrorCode::kRemote, fmt::format("a frame of type {} that does not belong here", frame.type));
  }
} catch (const Error& e) {
  giveUp(leader_, fmt::format("{} said what cannot be understood: {}", describe(home_.who(leader_)), e.what()));
}

// It may be there all the same: only when its listener says so, it is gone.
void Shrink::leaderGone() {
  up_.reset();
  if (trial_ && trial_->joined) {
    drop(doubt_);
    doubt_ = std::exchange(trial_, std::nullopt);
  } else {
    drop(trial_);
  }
  reactor_.cancel(seekTimer_);
  seekTimer_ = reactor_.after(kPauseBeforeSeeking, [this] { seek(); });
}

void Shrink::giveUp(int rank, const std::string& why) {
  if (!gone_.emplace(rank, why).second) return;  // and all that follows from it is done
  if (const auto at = callers_.find(rank); at != callers_.end()) {
    at->second.line->close();
    callers_.erase(at);
  }
  if (!call_) return;
  if (rank == home_.rank()) return end(ErrorCode::kRemote, "the others go on without this rank: " + why);
  if (rank == leader_) {
    reach_.reset();
    if (up_) up_->close();
    return leaderGone();
  }
  if (!leads()) return;
  if (trial_ && std::ranges::count(trial_->proposal.survivors, rank) != 0) return again();
  leadOn();
}

void Shrink::startTrial(ShrinkTry proposal) {
  drop(doubt_);
  drop(trial_);
  const auto at = std::ranges::find(proposal.survivors, home_.rank());
  if (at == proposal.survivors.end())
    return end(ErrorCode::kRemote, "the others go on without this rank: they had given it up");
  JoinRequest request = call_->like;
  request.id = home_.childId(proposal.id);
  request.rank = static_cast<int>(at - proposal.survivors.begin());
  request.size = static_cast<int>(proposal.survivors.size());
  request.led = true;
  const uint64_t job = proposal.id.job;
  trial_.emplace(Trial{std::move(proposal), nullptr, false});
  try {
    trial_->plane = home_.beginNew(request);
  } catch (const std::exception& e) {
    return tried({job, Refusal{codeOf(e), e.what()}});
  }
  trial_->plane->whenJoined([this, job, home = home_.alive()](const std::optional<Refusal>& refusal) {
    if (const auto alive = home.lock()) reactor_.post([this, job, refusal] { tried({job, refusal}); });
  });
}

void Shrink::tried(const ShrinkTried& how) {
  if (!trial_ || trial_->proposal.id.job != how.job) return;
  trial_->joined = !how.refusal;
  if (leads()) return noteTried(home_.rank(), how);
  if (up_) up_->send(Kind::kShrinkTried, encode(how));
}

// Those who have joined it as well must not take it for one that works.
void Shrink::drop(std::optional<Trial>& trial) {
  if (trial && trial->plane)
    trial->plane->drop(fmt::format("{} dropped this attempt to shrink", describe(home_.who(home_.rank()))));
  trial.reset();
}

}  // namespace tutti::control
