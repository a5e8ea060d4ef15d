// How a rank leaves, and how everyone learns that one has failed.
#include "base/log.h"
#include "control/member.h"

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kPartingTime(2);

}  // namespace

void Member::abort(const std::string& reason) {
  const Failure failure{rank(), fmt::format("{} aborted: {}", describe(self_), reason), true};
  desk_.fail(failure);
  reactor_.post([this, failure] { learn(failure, nullptr); });
}

// The first failure that is heard of goes to everyone but the one who told.
void Member::learn(const Failure& failure, const Line* from) {
  if (flooded_) return;
  if (!joined()) {
    // The root may know better why; but should this rank still get the table, then this is what it has to tell.
    if (!early_) early_ = failure;
    return joining_.treeBroke(failure.text);
  }
  flooded_ = true;
  desk_.fail(failure);
  log::info("{}", failure.text);
  const auto payload = std::make_shared<const Bytes>(encode(failure));
  if (parent_ && parent_.get() != from) parent_->send(Kind::kFailure, payload);
  for (const Child& child : children_)
    if (child.line && child.line.get() != from) child.line->send(Kind::kFailure, payload);
  checkLeave();
}

void Member::leave() {
  doLater([this] {
    ownerLeft_ = true;
    streams_.stop();
    listener_.close();
    checkShares();
    checkLeave();
  });
}

// A task of the owner's that fails on the plane's thread has nobody to throw to: it fails the communicator.
void Member::doLater(std::function<void()> task) {
  reactor_.post([this, task = std::move(task)] {
    try {
      task();
    } catch (const std::exception& e) {
      learn({rank(), fmt::format("{} failed: {}", describe(self_), e.what()), false}, nullptr);
    }
  });
}

void Member::checkLeave() {
  if (!ownerLeft_ || leaving_) return;
  if (!desk_.failed())
    for (const Child& child : children_)
      if (child.person.rank < size() && !child.left) return;
  leaving_ = true;
  ++parting_;
  for (const Child& child : children_)
    if (child.line) partFrom(child.line);
  if (parent_) partFrom(parent_);
  lineParted();
}

void Member::partFrom(const std::shared_ptr<Line>& line) {
  line->send(Kind::kGoodbye, Bytes{});
  ++parting_;
  line->finish(kPartingTime, [this] { lineParted(); });
}

void Member::lineParted() {
  if (--parting_ == 0) reactor_.stop();
}

void Member::joinFailed(ErrorCode code, const std::string& text) {
  listener_.close();
  streams_.stop();
  desk_.notJoined(code, text);
  reactor_.stop();
}

void Member::hurry() {
  // With an owner that never left, the process ends as if it had died: the others must not wait for it.
  reactor_.post([this] {
    if (!ownerLeft_) reactor_.stop();
  });
}

void Member::halt() {
  reactor_.post([this] {
    if (ownerLeft_) {
      for (const Child& child : children_)
        if (child.line) child.line->send(Kind::kGoodbye, Bytes{});
      if (parent_) parent_->send(Kind::kGoodbye, Bytes{});
    }
    reactor_.stop();
  });
}

}  // namespace tutti::control
