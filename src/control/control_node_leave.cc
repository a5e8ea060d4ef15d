// How a rank leaves, and how everyone learns that one has failed.
#include "control/control_node.h"
#include "join/last_call.h"
#include "process/descriptors.h"
#include "process/log.h"

namespace tutti::control {
namespace {

constexpr std::chrono::milliseconds kTellingTime(200);  // a thread that is gone or busy says nothing in time
// What a process that ends gives to calls that are under way, and how often it looks at them.
constexpr std::chrono::milliseconds kTimeForCalls(1000), kLookAtCalls(2);

// Kept also when it is dropped: a promise that is broken takes memory to say so, in its destructor.
class Telling {
 public:
  Telling() = default;
  ~Telling() { keep(); }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;
  std::future<void> future() { return promise_.get_future(); }
  void keep() {
    if (!std::exchange(kept_, true)) promise_.set_value();
  }

 private:
  std::promise<void> promise_;
  bool kept_ = false;
};

}  // namespace

// Before the rank has joined, its owner gets the failure at once, and the others learn it through the root. Only when
// the others are to be told: an owner that knows of it leaves, and that must not be the first that they hear.
void ControlNode::fail(const Failure& failure) noexcept {
  try {
    reactor_.post([this, failure] { spread(failure); });
  } catch (const std::exception&) {  // no memory for the words: there may be some when the plane's thread comes to it
    inShort_.store({true, failure.stop, failure.code, false}, std::memory_order_release);
    reactor_.wake();
  }
  mailbox_.notJoined(failure.code, failure.text);
  mailbox_.fail(failure);
}

void ControlNode::spread(const Failure& failure) {
  shrink_.interrupt(failure);
  if (joined()) return learn(failure, nullptr);
  if (failure.stop == Stop::kError) return joining_.fail(failure.code, failure.text);
  joining_.giveUp(failure.code, failure.text);
}

void ControlNode::spreadInShort() {
  // Acquire-release: pairs with the store in fail(), which is the only other one.
  const InShort what = inShort_.exchange({}, std::memory_order_acq_rel);
  if (!what.any) return;
  spread({rank(), what.stop, what.code, describe(self_) + " has stopped, without the memory to say why"});
}

// The first failure that is heard of goes to everyone but the one who told.
void ControlNode::learn(const Failure& failure, const Line* from) {
  // Of whom this rank hears nothing itself, or what all are told: else any rank could have any other left out.
  if (failure.stop == Stop::kSilence && (from == nullptr || !flooded_)) shrink_.giveUp(failure.rank, failure.text);
  if (flooded_) return checkLeave();  // which what failed before may have kept from it
  if (!joined()) {
    // The root may know better why; but should this rank still get the table, then this is what it has to tell.
    if (!early_) early_ = failure;
    return joining_.treeBroke(failure.text);
  }
  flood(failure, from);
  // Only now: an owner that ends its process as soon as it knows must not be the first that the neighbours hear of.
  mailbox_.fail(failure.rank == rank() ? asToldToMe(failure) : failure);
  log::info("{}", failure.text);
  checkLeave();
}

// Without the memory to tell all of them, they hear of that next: see broke().
void ControlNode::flood(const Failure& failure, const Line* from) try {
  const auto payload = std::make_shared<const Bytes>(encode(failure));
  flooded_ = true;
  revoked_ = failure.stop == Stop::kRevoke;
  if (parent_ && parent_.get() != from) parent_->send(Kind::kFailure, payload);
  for (const Child& child : children_)
    if (child.line && child.line.get() != from) child.line->send(Kind::kFailure, payload);
} catch (const std::exception&) {
  flooded_ = false;
  throw;
}

// A rank that was stopped for a while hears of itself.
Failure ControlNode::asToldToMe(Failure failure) const {
  if (failure.stop == Stop::kSilence) failure.text = "the others have given this rank up: " + failure.text;
  return failure;
}

std::shared_ptr<ControlNode> ControlNode::shrink(const JoinRequest& like, std::span<const int> leftOut,
                                                 const std::function<bool()>& cancelled) {
  if (!mailbox_.hasJoined()) throw Error(ErrorCode::kInvalidUsage, "shrink needs a communicator that has been joined");
  return std::static_pointer_cast<ControlNode>(shrink_.call(like, leftOut, cancelled));  // beginNew() makes no others
}

std::shared_ptr<NewPlane> ControlNode::beginNew(const JoinRequest& request) {
  auto node = std::make_shared<ControlNode>(request);
  BackgroundThreads::instance().start(node);
  return node;
}

void ControlNode::drop(const std::string& why) {
  fail({rank(), Stop::kAbort, ErrorCode::kRemote, why});
  leaveLater();
}

Dial::Target ControlNode::targetFor(int rank) const {
  const Endpoint& endpoint = who(rank).endpoint;
  return {memberContext(request_, key_, endpoint),
          request_.network.unixSockets ? unixNamesOf(endpoint) : std::vector<std::string>(), endpoint.addresses};
}

// Returns when the neighbours have been told, so that the process may end at once: they know then that it left.
void ControlNode::leave() {
  const bool tells = mailbox_.hasJoined();
  const auto told = beginLeave();
  if (tells) told.wait_for(kTellingTime);
}

void ControlNode::leaveLater() { beginLeave(); }

// Ready when the neighbours have been told.
std::future<void> ControlNode::beginLeave() {
  auto telling = std::make_shared<Telling>();
  auto told = telling->future();
  // The task alone keeps the promise, also when it is dropped: nobody waits for a thread that is gone.
  reactor_.post([this, telling = std::move(telling)] {
    if (joined() && !ownerLeft_) tellLeaving();
    telling->keep();
    ownerLeaves();
  });
  return told;
}

// Once: a process that ends leaves for an owner who has not, and who may do so yet.
void ControlNode::ownerLeaves() {
  if (std::exchange(ownerLeft_, true)) return;
  if (!joined()) return joining_.giveUp(ErrorCode::kRemote, gaveUpJoining(describe(self_)));
  streams_.stop();
  shrink_.leave([this] {
    listener_.close();
    lineParted();
  });
  ++parting_;  // until that is called
  shrink_.settle();
  checkShares();
  checkLeave();
}

// Without the memory for that it is a failure to the others; but this rank goes.
void ControlNode::tellLeaving() noexcept try {
  if (parent_) parent_->send(Kind::kLeaving, Bytes{});
  for (const Child& child : children_)
    if (child.line) child.line->send(Kind::kLeaving, Bytes{});
} catch (const std::exception& thrown) {
  Failure failure{rank(), Stop::kError, ErrorCode::kRemote, {}};
  const Error why = errorOrOutOfMemory(
      [&] { return Error(failure.code, fmt::format("{} left without a word: {}", describe(self_), thrown.what())); });
  setText(failure.text, why.what());
  fail(failure);
}

// What fails on the plane's own thread has nobody to throw to: it fails the communicator.
void ControlNode::broke(const std::string& what) {
  fail({rank(), Stop::kError, ErrorCode::kRemote, fmt::format("{} failed: {}", describe(self_), what)});
}

void ControlNode::checkLeave() {
  if (!ownerLeft_ || leaving_) return;
  // Not before the failure is on its way on every line, and after a revoke the tree stays for those who are there.
  if (!flooded_ || revoked_)
    for (const Child& child : children_)
      if (child.who.rank < size() && !child.left) return;
  leaving_ = true;
  ++parting_;
  for (const Child& child : children_)
    if (child.line) partFrom(child.line);
  if (parent_) partFrom(parent_);
  lineParted();
}

// Without the memory for a goodbye it is a death to the other end; but this rank goes.
void ControlNode::partFrom(const std::shared_ptr<Line>& line) noexcept {
  ++parting_;
  try {
    line->send(Kind::kGoodbye, line == parent_ ? encodeRanks(ended_) : Bytes{});
    line->finish([this] { lineParted(); });
  } catch (const std::exception&) {
    line->close();
    lineParted();
  }
}

void ControlNode::lineParted() noexcept {
  if (--parting_ == 0 && leaving_) reactor_.stop();
}

void ControlNode::joinFailed(ErrorCode code, const std::string& text) {
  reactor_.stop();  // after this
  listener_.close();
  streams_.stop();
  mailbox_.notJoined(code, text + lackOfDescriptors(text));
}

// Those who have yet to meet this rank hear of it through the root.
void ControlNode::hurry() {
  reactor_.post([this] {
    if (!joined()) return joining_.fail(ErrorCode::kRemote, gaveUpJoining(describe(self_)));
    leaveWithProcess(Deadline::in(kTimeForCalls));
  });
}

// For an owner that never left: in good order, but the others may know. What is under way, on streams or on other
// threads of the program, may have others who wait for it, and is given a moment; what begins now, or has not ended by
// then, fails here.
void ControlNode::leaveWithProcess(Deadline forCalls) {
  if (ownerLeft_) return shrink_.hurry();
  if (!flooded_ && !forCalls.passed() && request_.busy && request_.busy()) {
    reactor_.after(kLookAtCalls, [this, forCalls] { leaveWithProcess(forCalls); });
    return;
  }
  ended_.insert(rank());
  mailbox_.fail(takenDown_);
  tellLeaving();
  ownerLeaves();
  shrink_.hurry();
}

void ControlNode::halt() {
  reactor_.post([this] {
    if (ownerLeft_) {
      for (const Child& child : children_)
        if (child.line) child.line->send(Kind::kGoodbye, Bytes{});
      if (parent_) parent_->send(Kind::kGoodbye, encodeRanks(ended_));
    }
    reactor_.stop();
  });
}

}  // namespace tutti::control
