// What is left to do when a shrink is decided: see to it that all know, and stay to be asked until they do.
#include <algorithm>
#include <vector>

#include "shrink/shrink.h"

namespace tutti::control {
namespace {

// A rank that cannot be sure that all others know goes on answering, even after its owner has left, until they must
// have noticed that their leader has gone and have looked for the next one; less long when its process ends.
constexpr std::chrono::milliseconds kTimeToFindTheNextLeader(3000), kStayOfAnEndingProcess(1500);

}  // namespace

// Those who have called for the shrink that was just committed; who calls for a later one goes on waiting.
void Shrink::informAll() {
  const uint64_t decided = serial() - 1;
  for (auto at = callers_.begin(); at != callers_.end();) {
    const auto here = at++;
    if (here->second.call.serial > decided) continue;
    inform(here->first, here->second.line, committed_[decided]);
    callers_.erase(here);
  }
}

void Shrink::inform(int rank, const std::shared_ptr<Line>& line, uint64_t job) {
  Line::Events events;
  events.frame = [this, rank, raw = line.get()](Frame& frame) {
    const auto at = informed_.find(rank);
    if (at == informed_.end() || at->second.line.get() != raw || static_cast<Kind>(frame.type) != Kind::kShrinkAck)
      return;
    at->second.knows = true;
    settle();
  };
  events.closed = [this, rank, raw = line.get()](const std::string&) {
    const auto at = informed_.find(rank);
    if (at == informed_.end() || at->second.line.get() != raw) return;
    informed_.erase(at);
    settle();
  };
  line->setEvents(std::move(events));
  line->send(Kind::kShrinkCommit, Writer().value(job).take());
  Informed& informed = informed_[rank];
  if (informed.line) informed.line->close();
  informed = {line, false};
}

void Shrink::leaderWasHeard(std::shared_ptr<Line> line) {
  if (lastUp_) lastUp_->close();
  lastUp_ = std::move(line);
  stayFor(patience() + kTimeToFindTheNextLeader);
  if (lastUp_) {
    Line::Events events;
    events.frame = [this](Frame& frame) {
      if (static_cast<Kind>(frame.type) != Kind::kShrinkDone) return;
      std::exchange(lastUp_, nullptr)->close();
      settle();
    };
    lastUp_->setEvents(std::move(events));
    lastUp_->send(Kind::kShrinkAck, Bytes{});
  }
  settle();
}

void Shrink::stayFor(Reactor::Clock::duration span) {
  reactor_.cancel(settleTimer_);
  settleTimer_ = reactor_.after(span, [this] {
    settleTimer_ = 0;
    settle();
  });
}

void Shrink::hurry() {
  if (settleTimer_ != 0) stayFor(kStayOfAnEndingProcess);
}

// Everyone whom this rank had to tell has said that it knows, and its leader has said so of all. Or it has been too
// long: a leader that has gone without a word keeps `lastUp_` set.
void Shrink::settle() {
  if (settleTimer_ != 0) {
    if (lastUp_) return;
    if (!farToTell_.empty() || !farTold_.empty()) return;
    if (std::any_of(informed_.begin(), informed_.end(), [](const auto& one) { return !one.second.knows; })) return;
    reactor_.cancel(std::exchange(settleTimer_, 0));
  }
  for (const auto& [rank, one] : informed_) partFrom(*one.line);
  informed_.clear();
  farToTell_.clear();
  for (auto& [rank, one] : std::exchange(farTold_, {}))
    if (one.line) one.line->close();
  if (lastUp_) lastUp_->close();
  lastUp_.reset();
  if (const auto left = std::exchange(left_, {})) left();
}

// Without the memory for it the other end takes this rank for gone, and stays longer.
void Shrink::partFrom(Line& informed) const noexcept try {
  informed.setEvents({});
  if (!lastUp_) informed.send(Kind::kShrinkDone, Bytes{});
  informed.finish();
} catch (const std::exception&) {
  informed.close();
}

void Shrink::leave(std::function<void()> left) {
  end(ErrorCode::kRemote, "the communicator was left");
  ownerLeft_ = true;
  for (const auto& [rank, caller] : std::exchange(callers_, {})) caller.line->close();
  left_ = std::move(left);
}

}  // namespace tutti::control
