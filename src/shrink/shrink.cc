#include "shrink/shrink.h"

#include "base/deadline_names.h"

namespace tutti::control {
namespace {

// How long a rank that says nothing at all is waited for when no heartbeat says it.
constexpr std::chrono::milliseconds kDefaultPatience(5000);
// The leader's word on who is missing is better than the own one.
constexpr std::chrono::milliseconds kPatienceForText(500);

}  // namespace

std::shared_ptr<NewPlane> Shrink::call(const JoinRequest& like, std::span<const int> leftOut,
                                       const std::function<bool()>& cancelled) {
  const auto verdict = std::make_shared<ShrinkVerdict>();
  {
    std::lock_guard lock(mutex_);
    if (closed_) throw Error(closed_->code, closed_->text);
    if (pending_) throw Error(ErrorCode::kInvalidUsage, "another thread is in shrink() of this communicator");
    pending_ = verdict;
  }
  try {
    reactor_.post([this, &cancelled, mine = like, without = std::set<int>(leftOut.begin(), leftOut.end())]() mutable {
      if (!isCancelled(cancelled)) begin(std::move(mine), std::move(without));
    });
  } catch (const std::exception&) {  // no memory: the call may come again
    std::lock_guard lock(mutex_);
    pending_.reset();
    throw;
  }
  return verdict->await();
}

void Shrink::close(ErrorCode code, std::string_view text) noexcept {
  std::lock_guard lock(mutex_);
  setText(closed_.emplace(Refusal{code, {}}).text, text);
  if (pending_) pending_->fail(code, text);
  pending_.reset();
}

std::chrono::milliseconds Shrink::patience() const noexcept {
  return heartbeat_.heartbeat().count() > 0 ? heartbeat_.heartbeat() : kDefaultPatience;
}

std::unique_ptr<Prober> Shrink::reach(int rank, Prober::Won won, std::function<void(Text)> gone) {
  return std::make_unique<Prober>(reactor_, home_.targetFor(rank), patience(), std::move(won), std::move(gone));
}

// An interrupt from here on finds something to end; one from before does not come again. Whoever asks holds `asked` for
// as long as it is pending.
bool Shrink::isCancelled(const std::function<bool()>& asked) {
  std::lock_guard lock(mutex_);
  if (pending_ && !(asked && asked())) return false;
  if (pending_) pending_->fail(ErrorCode::kRemote, "shrink was given up: this rank called tuttiCommAbort or is ending");
  pending_.reset();
  return true;
}

// From its first line on end() ends it, so that takes no memory.
void Shrink::begin(JoinRequest&& like, std::set<int>&& leftOut) {
  static_assert(std::is_nothrow_move_constructible_v<Call>);
  call_.emplace(Call{std::move(like), std::move(leftOut), 0});
  call_->deadline = reactor_.after(call_->like.deadline.left(), [this] { onDeadline(); });
  leaderSays_.clear();
  nextProbe_ = std::chrono::milliseconds(2);
  nextPause_ = std::chrono::milliseconds(5);
  failures_ = 0;
  if (const auto at = gone_.find(home_.rank()); at != gone_.end())
    return end(ErrorCode::kRemote, "the others go on without this rank: " + at->second);
  if (beginRound()) seek();
}

// Whoever waits hears of it first: what follows may take memory that is not there.
void Shrink::end(ErrorCode code, std::string_view text) {
  if (!call_) return;
  tellOwner(code, text);
  stopCall();
}

void Shrink::tellOwner(ErrorCode code, std::string_view text) {
  std::lock_guard lock(mutex_);
  if (pending_) pending_->fail(code, text);
  pending_.reset();
}

// What is under way ends; those who wait here for another call of this rank's owner stay. The call goes last: what
// fails for lack of memory is ended when that is told (see interrupt()).
void Shrink::stopCall() {
  reactor_.cancel(call_->deadline);
  for (const Reactor::Token timer : {seekTimer_, lookAheadTimer_, probeTimer_, pause_}) reactor_.cancel(timer);
  probeTimer_ = pause_ = 0;
  leader_ = -1;
  reach_.reset();
  if (up_) up_->close();
  up_.reset();
  for (auto& [rank, one] : probes_)
    if (one.line) one.line->close();
  probes_.clear();
  drop(trial_);
  drop(doubt_);
  if (root_) root_->halt();
  root_.reset();
  call_.reset();
}

// Who has aborted the communicator, or ends, is gone in a moment, and the others go on without it. A call that is given
// up may have yet to begin, and others wait for it already.
void Shrink::interrupt(const Failure& failure) {
  const bool stays = failure.stop != Stop::kAbort && failure.stop != Stop::kDeath;
  if (!call_ && failure.stop == Stop::kGivenUp) tellGivenUp(failure.text);
  if (!call_) return;
  tellOwner(failure.code, failure.text);
  if (stays) tellGivenUp(failure.text);
  stopCall();
}

// Over the lines that there are: who comes later waits for this rank, which may call again.
void Shrink::tellGivenUp(Text why) {
  const Bytes news = encode(Refusal{ErrorCode::kRemote, why});
  if (up_) tellLast(leader_, std::exchange(up_, nullptr), Kind::kShrinkGaveUp, news);
  for (auto at = callers_.begin(); at != callers_.end();) {
    const auto here = at++;
    if (here->second.call.serial != serial()) continue;
    tellLast(here->first, here->second.line, Kind::kShrinkGaveUp, news);
    callers_.erase(here);
  }
}

std::string Shrink::tooLate() const {
  return fmt::format("the survivors could not go on together before the deadline of shrink on rank {}, {}",
                     home_.rank(), kJoinDeadline);
}

void Shrink::onDeadline() {
  if (leads()) {
    const std::string what = trial_ ? "; all who are left came, but the tree between them did not stand" : waitText();
    return endAll(ErrorCode::kTimeout, tooLate() + what);
  }
  call_->deadline = reactor_.after(kPatienceForText, [this] {
    end(ErrorCode::kTimeout, tooLate() + (leaderSays_.empty() ? waitText() : leaderSays_));
  });
}

// Everyone who has joined this job commits to it; whoever hears of it without having joined has been left out.
void Shrink::commit(uint64_t job) {
  const auto matches = [&](const std::optional<Trial>& one) {
    return one && one->joined && one->proposal.id.job == job;
  };
  if (!matches(trial_) && !matches(doubt_))
    return end(ErrorCode::kRemote, "the others go on without this rank: they had given it up");
  for (const int rank : call_->leftOut) gone_.emplace(rank, leftOutText(rank));
  committed_.push_back(job);
  round_ = 0;
  called_ = missed_ = false;
  differed_.clear();
  informAll();
  leaderWasHeard(std::exchange(up_, nullptr));
  root_.reset();  // it ends by itself
  // Only now: what fails before leaves the new plane to end(), which leaves it.
  Trial won = *std::exchange(matches(trial_) ? trial_ : doubt_, std::nullopt);
  std::shared_ptr<ShrinkVerdict> verdict;
  {
    std::lock_guard lock(mutex_);
    verdict = std::exchange(pending_, nullptr);
  }
  if (verdict) verdict->succeed(std::move(won.plane));
  stopCall();
}

}  // namespace tutti::control
