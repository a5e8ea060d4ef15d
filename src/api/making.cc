#include "api/making.h"

#include <algorithm>
#include <new>

#include "api/guard.h"
#include "api/submit.h"

namespace tutti::api {
namespace {

// The join, and what its caller does with the communicator.
template <class Use>
auto joined(const Making& making, const Communicator::Cancelled& cancelled, const Communicator::Begun& onBegun,
            Use use) {
  bool begun = false;
  try {
    return use(making.join(cancelled, [&] {
      begun = true;
      if (onBegun) onBegun();
    }));
  } catch (const std::exception& thrown) {
    if (making.isAwaited) tellTheOthers((*making.parent)->team(), errorOf(thrown), begun);
    throw;
  }
}

tuttiComm_t makeHere(const Making& making) {
  return joined(making, {}, {}, [](const std::shared_ptr<Communicator>& made) -> tuttiComm_t {
    if (!made) return nullptr;
    return orTellTheOthers(made->team(), [&] { return makeHandle(made); });
  });
}

std::shared_ptr<Communicator> parentOf(const Making& making) {
  return making.parent ? (*making.parent)->shared_from_this() : nullptr;
}

std::shared_ptr<Maker> newMaker(Making making) {
  return std::make_shared<Maker>(std::move(making), inGroup() ? kDeferred : 0);
}

// In the open group, if there is one.
std::shared_ptr<Maker> newMakerOfCall(Making making) {
  const auto kept = making.isAwaited ? parentOf(making) : nullptr;
  try {
    auto maker = newMaker(std::move(making));
    if (inGroup()) deferMakers({maker});
    return maker;
  } catch (const std::exception& thrown) {
    if (kept) tellTheOthers(kept->team(), errorOf(thrown), false);
    throw;
  }
}

// Nobody else would end those that have been made.
[[noreturn]] void destroyAll(const Makers& makers, const Error& why) {
  for (const auto& maker : makers) maker->destroy();
  throw why;
}

}  // namespace

void tellTheOthers(comm::Team& team, const Error& error, bool begun) noexcept {
  if (!team.broken() && (!begun || error.code() == ErrorCode::kSystem)) team.fail(error);
}

Error Siblings::fail(const Error& error) noexcept {
  std::lock_guard lock(mutex_);
  if (!first_) first_ = error;
  failed_.store(true, std::memory_order_relaxed);
  return *first_;
}

void Awaited::add() noexcept {
  std::lock_guard lock(mutex_);
  ++open_;
}

void Awaited::done(std::optional<MakingFailure> failure) noexcept {
  std::lock_guard lock(mutex_);
  --open_;
  if (failure && !first_) first_.emplace(*std::move(failure));
  changed_.notify_all();
}

std::optional<MakingFailure> Awaited::wait() noexcept {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return open_ == 0; });
  return std::move(first_);
}

Maker::Maker(Making making, uint32_t more)
    : making_(std::move(making)), comm_(makePendingHandle(making_.rank, making_.size, more, parentOf(making_))) {}

Maker::~Maker() {
  if (!over_)
    giveUp(errorOrOutOfMemory([] {
      return Error(ErrorCode::kInvalidUsage, "the group that was to make this communicator was never ended");
    }));
}

tuttiComm_t Maker::publish() noexcept {
  published_ = making_.makesHandle;
  return published_ ? comm_ : nullptr;
}

void Maker::begin(const std::shared_ptr<Maker>& maker, std::shared_ptr<Awaited> awaited) {
  if (maker->making_.nonBlocking && maker->making_.parent) maker->making_.parent->goOn();
  undefer(maker->comm_);
  if (awaited) awaited->add();
  maker->awaited_ = std::move(awaited);
  try {
    BackgroundThreads::instance().start(maker);
  } catch (const std::exception& thrown) {
    if (maker->making_.isAwaited) tellTheOthers((*maker->making_.parent)->team(), errorOf(thrown), false);
    throw;
  }
}

void Maker::giveUp(const Error& why) noexcept { fail(why); }

void Maker::destroy() {
  if (!made_) return;
  const CallGuard visit(comm_, making_.call);
  destroyHandle(comm_);
}

void Maker::run() {
  const auto cancelled = [this] { return isGivenUp(*comm_) || (making_.siblings && making_.siblings->failed()); };
  const auto begun = [this] { comm_->joinsByItself.store(true, std::memory_order_relaxed); };
  try {
    joined(making_, cancelled, begun, [this](std::shared_ptr<Communicator> made) { end(std::move(made)); });
  } catch (const std::exception& thrown) {
    fail(errorOf(thrown));
  }
}

// The parent goes first: whoever sees the child made, or not, may go on with both.
void Maker::end(std::shared_ptr<Communicator> made) noexcept {
  over_ = true;
  made_ = made != nullptr;
  making_.parent.reset();
  if (made)
    completeHandle(comm_, std::move(made));
  else
    dropPending(comm_);
  if (awaited_) awaited_->done(std::nullopt);
}

void Maker::fail(const Error& error) noexcept {
  over_ = true;
  const Error why = making_.siblings ? making_.siblings->fail(error) : error;
  MakingFailure failure = failureOf(why);
  if (making_.parent) recordIn(making_.parent->handle(), static_cast<tuttiResult_t>(why.code()), why.what());
  making_.parent.reset();
  if (published_)
    failHandle(comm_, why);
  else
    dropPending(comm_);
  if (awaited_) awaited_->done(std::move(failure));
}

MakingFailure Maker::failureOf(const Error& error) const noexcept {
  MakingFailure failure{making_.call, {}, error};
  try {
    failure.who = nameOfPending(*comm_);
  } catch (const std::exception&) {  // no memory: then without it
  }
  return failure;
}

std::optional<MakingFailure> makeAll(const Makers& makers) {
  const bool waits = std::ranges::any_of(makers, [](const auto& maker) { return !maker->making().nonBlocking; });
  const auto awaited = waits ? std::make_shared<Awaited>() : nullptr;
  for (const auto& maker : makers) {
    try {
      Maker::begin(maker, maker->making().nonBlocking ? nullptr : awaited);
    } catch (const std::exception& thrown) {
      maker->giveUp(errorOf(thrown));
    }
  }
  return waits ? awaited->wait() : std::nullopt;
}

tuttiResult_t make(tuttiComm_t* comm, Making making) {
  if (!inGroup() && !making.nonBlocking) {
    *comm = makeHere(making);
    return tuttiSuccess;
  }
  const auto maker = newMakerOfCall(std::move(making));
  const tuttiComm_t handle = maker->publish();
  try {
    if (!inGroup()) Maker::begin(maker, nullptr);
  } catch (const std::exception&) {
    maker->unpublish();
    throw;
  }
  *comm = handle;
  return inGroup() ? tuttiSuccess : tuttiInProgress;
}

tuttiResult_t makeTogether(tuttiComm_t* comms, std::vector<Making> makings) {
  const bool goesOn = makings.front().nonBlocking;
  Makers makers;
  for (Making& one : makings) makers.push_back(newMaker(std::move(one)));
  if (inGroup())
    deferMakers(makers);
  else if (const auto failure = goesOn ? std::nullopt : makeAll(makers))
    destroyAll(makers, failure->error);
  for (size_t i = 0; i < makers.size(); ++i) comms[i] = makers[i]->publish();
  if (inGroup() || !goesOn) return tuttiSuccess;
  makeAll(makers);
  return tuttiInProgress;
}

}  // namespace tutti::api
