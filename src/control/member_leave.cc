// How a rank leaves, and how everyone learns that one has failed.
#include "base/log.h"
#include "control/member.h"

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kPartingTime(2);

}  // namespace

// Before the rank has joined, its owner gets the failure at once, and the others learn it through the root.
void Member::fail(const Failure& failure) {
  desk_.notJoined(failure.code, failure.text);
  desk_.fail(failure);
  reactor_.post([this, failure] {
    shrink_.interrupt(failure);
    if (joined()) return learn(failure, nullptr);
    joining_.fail(failure.code, failure.text);
  });
}

// The first failure that is heard of goes to everyone but the one who told.
void Member::learn(const Failure& failure, const Line* from) {
  if (failure.stop == Stop::kSilence) shrink_.giveUp(failure.rank, failure.text);
  if (flooded_) return;
  if (!joined()) {
    // The root may know better why; but should this rank still get the table, then this is what it has to tell.
    if (!early_) early_ = failure;
    return joining_.treeBroke(failure.text);
  }
  flooded_ = true;
  revoked_ = failure.stop == Stop::kRevoke;
  const auto payload = std::make_shared<const Bytes>(encode(failure));
  if (parent_ && parent_.get() != from) parent_->send(Kind::kFailure, payload);
  for (const Child& child : children_)
    if (child.line && child.line.get() != from) child.line->send(Kind::kFailure, payload);
  // Only now: an owner that ends its process as soon as it knows must not be the first that the neighbours hear of.
  desk_.fail(failure.rank == rank() ? asToldToMe(failure) : failure);
  log::info("{}", failure.text);
  checkLeave();
}

// A rank that was stopped for a while hears of itself.
Failure Member::asToldToMe(Failure failure) const {
  if (failure.stop == Stop::kSilence) failure.text = "the others have given this rank up: " + failure.text;
  return failure;
}

ShrinkResult Member::shrink(const JoinRequest& like) {
  if (!desk_.hasJoined()) throw Error(ErrorCode::kInvalidUsage, "shrink needs a communicator that has been joined");
  return shrink_.call(like);
}

Dial::Target Member::targetFor(int rank) const {
  const Endpoint& endpoint = person(rank).endpoint;
  return {{request_.id.secret, request_.id.job, endpoint.id, encryptionOf(request_)},
          request_.network.unixSockets ? endpoint.unixName : std::string(),
          endpoint.addresses};
}

void Member::leave() {
  doLater([this] {
    ownerLeft_ = true;
    if (!joined()) return joining_.fail(ErrorCode::kRemote, describe(self_) + " gave up joining");
    streams_.stop();
    ++parting_;
    shrink_.leave([this] {
      listener_.close();
      lineParted();
    });
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
      learn({rank(), Stop::kError, ErrorCode::kRemote, fmt::format("{} failed: {}", describe(self_), e.what())},
            nullptr);
    }
  });
}

void Member::checkLeave() {
  if (!ownerLeft_ || leaving_) return;
  // Not before the failure is on its way on every line, and after a revoke the tree stays for those who are there.
  if (!flooded_ || revoked_)
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
  if (--parting_ == 0 && leaving_) reactor_.stop();
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
    if (!ownerLeft_) return reactor_.stop();
    shrink_.hurry();
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
