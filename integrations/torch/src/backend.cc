#include "backend.h"

#include <algorithm>
#include <numeric>

#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "checks.h"
#include "dense.h"
#include "errors.h"
#include "gil.h"
#include "groups.h"

namespace tutti_torch {
namespace {

constexpr milliseconds kLeave(10'000);  // what runs gets so long to end when the group is destroyed
// And its callbacks, once it has been aborted. One that still runs in Python when the interpreter ends takes the
// process with it (SIGABRT), so this is more than a loaded machine makes of a callback's while.
constexpr milliseconds kLastWords(10'000);

tuttiUniqueId idFor(c10d::Store& store, int rank, int size, milliseconds timeout) {
  return size == 1 ? newId() : agreeOnId(store, rank, size, timeout);
}

// Keys of a group that was made before, under the same name in the same Store, are none of this one: ranks count how
// often they have come.
c10::intrusive_ptr<c10d::Store> ofThisTime(const c10::intrusive_ptr<c10d::Store>& store, int rank) {
  const int64_t time = store->add(c10::str("made/", rank), 1);
  return c10::make_intrusive<c10d::PrefixStore>(c10::str("time/", time), store);
}

int64_t elementsOf(const Tensors& tensors) {
  int64_t all = 0;
  for (const auto& tensor : tensors) all += tensor.numel();
  return all;
}

}  // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, milliseconds timeout,
                 std::string group)
    : c10d::Backend(rank, size),
      store_(ofThisTime(store, rank)),
      group_(std::move(group)),
      timeoutMs_(timeout.count()),
      comm_(std::make_shared<Communicator>(idFor(*store_, rank, size, timeout), rank, size, timeout, group_)),
      queue_(std::make_unique<Queue>()),
      sent_(std::make_shared<Messages>(store_, rank, size, group_, [comm = comm_] { return comm->error(); })),
      gpu_(std::make_unique<Gpu>(store_, rank, size, timeout, group_)) {
  comm_->awaitAll();
  init();
}

// The last reference may go while Python's lock is held; threads that are waited for may be about to take it.
Backend::~Backend() {
  const WithoutGil released;
  leave();
}

// In a child made by fork nothing of this is there: it is left as it was.
void Backend::leave() noexcept {
  Groups::ofThisProcess().remove(*this);
  if (!queue_) return;
  if (inChild()) {
    queue_->forget();
    new std::shared_ptr<Messages>(std::move(sent_));
    new std::shared_ptr<Communicator>(std::move(comm_));
    gpu_.release();
  } else {
    shutdown();
    sent_->close();
    sent_.reset();
  }
  queue_.reset();
  comm_.reset();
  gpu_.reset();
}

c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions() {
  return c10::make_intrusive<Options>("tutti", milliseconds(timeoutMs_));
}

void Backend::setTimeout(milliseconds timeout) {
  timeoutMs_ = timeout.count();
  gpu_->setTimeout(timeout);
}

milliseconds Backend::effective(milliseconds asked) const {
  return milliseconds(toMs(asked.count() <= 0 ? milliseconds(timeoutMs_) : asked));
}

void Backend::checkRank(const char* call, int64_t rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < size_, "tutti: ", call, ": rank ", rank, " is not in a group of ", size_);
}

// What torch.profiler shows as record_param_comms.
void Backend::record(const About& about, bool message) const {
  const auto type = !about.inputs.empty()    ? about.inputs.front().scalar_type()
                    : !about.outputs.empty() ? about.outputs.front().scalar_type()
                                             : at::kByte;
  const auto number = std::make_tuple(static_cast<int64_t>(about.sequence), message);
  const auto name = std::make_tuple(getGroupUid(), getGroupDesc());
  const std::vector<int64_t> noSplits;
  RECORD_PARAM_COMMS_DATA(number, name, about.inputs, about.outputs, rank_, about.title + sizeof "tutti:" - 1,
                          elementsOf(about.inputs), elementsOf(about.outputs), type, noSplits, noSplits, -1, -1, size_);
}

// Before any mutex, which may be held for ever here.
void Backend::refuseInChild(const About& about) const {
  TORCH_CHECK(!inChild(), about.title,
              ": this process group was made before the process forked; make one of its own here");
}

void Backend::announce(About& about, bool message) {
  about.timeout = effective(about.timeout);
  about.sequence = message ? ++messages_ : ++sequence_;
  record(about, message);
  tally_->called(about);
}

WorkPtr Backend::begin(About about, bool message) {
  announce(about, message);
  auto work = c10::make_intrusive<OperationWork>(rank_, std::move(about), tally_);
  if (coalesced_) coalesced_->push_back(work);
  return work;
}

WorkResult Backend::issue(About about, Body body) {
  if (const auto gpu = gpuOf(about)) return issueOn(*gpu, std::move(about), std::move(body));
  refuseInChild(about);
  std::unique_lock lock(mutex_);
  about.async = about.async || coalesced_;
  const WorkPtr work = begin(std::move(about), false);
  if (stopped_) {
    work->end(stopped_);
    return work;
  }
  // The body goes by the communicator's pointer: a group may be destroyed while it runs.
  auto run = [comm = comm_, timeout = work->about().timeout, body = std::move(body)] {
    Calls calls(comm->get(), timeout);
    body(calls);
  };
  if (work->about().async) {
    queue_->submit(work, std::move(run));
    return work;
  }
  lock.unlock();  // abort must come through while it runs
  const auto since = std::chrono::steady_clock::now();
  queue_->submit(work, std::move(run));
  tally_->waited(work->about().type, since);
  return work;
}

WorkResult Backend::issueOn(c10::Device gpu, About about, Body body) {
  const bool coalesces = announceOn(about, false), async = about.async;
  if (!coalesces) return gpu_->issue(gpu, std::move(about), std::move(body));
  const auto work = gpu_->collect(gpu, std::move(about), std::move(body));
  return async ? work : nullptr;  // nobody can wait for it before endCoalescing
}

WorkResult Backend::messageOn(c10::Device gpu, About about, int peer) {
  TORCH_CHECK_VALUE(peer != kAnySource, about.title, ": on a GPU a receive names the rank that sends");
  const bool sends = about.type == c10d::OpType::SEND;
  const auto body = [sends, tensor = sends ? about.inputs.front() : about.outputs.front()](int other) -> Body {
    return [=](Calls& calls) {
      const Dense dense(tensor, sends ? Use::kRead : Use::kWrite);
      sends ? calls.send(dense.memory(), other) : calls.recv(dense.memory(), other);
      if (!sends) calls.writeBack(dense);
    };
  };
  const bool coalesces = announceOn(about, true);
  return coalesces ? gpu_->collect(gpu, std::move(about), body(peer))
                   : gpu_->message(gpu, std::move(about), peer, body(rank_ < peer ? 1 : 0));
}

// Whether it is coalesced with others. What follows is not under the lock: abort must come through while it waits for
// other ranks.
bool Backend::announceOn(About& about, bool message) {
  refuseInChild(about);
  const std::lock_guard lock(mutex_);
  announce(about, message);
  if (stopped_) std::rethrow_exception(stopped_);
  return coalesced_.has_value();
}

WorkResult Backend::message(About about, int peer, int tag) {
  TORCH_CHECK_VALUE(tag >= 0, about.title, ": tag ", tag, " is negative");
  if (const auto gpu = gpuOf(about)) return messageOn(*gpu, std::move(about), peer);
  refuseInChild(about);
  const bool sends = about.type == c10d::OpType::SEND;
  WorkPtr work;
  {
    const std::lock_guard lock(mutex_);
    work = begin(std::move(about), true);
    if (stopped_) {
      work->end(stopped_);
      return work;
    }
  }
  sends ? sent_->send(work, peer, tag) : sent_->recv(work, peer, tag);
  return work;
}

WorkResult Backend::send(Tensors& tensors, int to, int tag) {
  checkRank("send", to);
  TORCH_CHECK_VALUE(to != rank_, "tutti: send: a rank cannot send to itself");
  return message({c10d::OpType::SEND, "tutti:send", {only("send", tensors)}, {}, c10d::kUnsetTimeout}, to, tag);
}

WorkResult Backend::recv(Tensors& tensors, int from, int tag) {
  checkRank("recv", from);
  TORCH_CHECK_VALUE(from != rank_, "tutti: recv: a rank cannot receive from itself");
  return message({c10d::OpType::RECV, "tutti:recv", {}, {only("recv", tensors)}, c10d::kUnsetTimeout}, from, tag);
}

WorkResult Backend::recvAnysource(Tensors& tensors, int tag) {
  return message({c10d::OpType::RECVANYSOURCE, "tutti:recvAnySource", {}, {only("recv", tensors)}, c10d::kUnsetTimeout},
                 kAnySource, tag);
}

void Backend::startCoalescing() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!coalesced_, "tutti: startCoalescing was called twice without an endCoalescing between");
  coalesced_.emplace();
}

WorkResult Backend::endCoalescing() {
  std::unique_lock lock(mutex_);
  TORCH_CHECK(coalesced_, "tutti: endCoalescing without a startCoalescing");
  auto works = std::move(*coalesced_);
  coalesced_.reset();
  lock.unlock();
  if (const auto onGpu = gpu_->flush()) {
    TORCH_CHECK_VALUE(works.empty(), "tutti: calls on the CPU and on a GPU cannot be coalesced with each other");
    return onGpu;
  }
  return c10::make_intrusive<WorkGroup>(rank_, std::move(works));
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                 const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& options) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank_);
  if (found == ranks.end()) return nullptr;
  const auto timeout = options ? options->timeout : milliseconds(timeoutMs_);
  const auto part = c10::make_intrusive<Backend>(store, static_cast<int>(found - ranks.begin()),
                                                 static_cast<int>(ranks.size()), timeout, group_ + ", a part of it");
  Groups::ofThisProcess().add(part);
  return part;
}

GroupNumbers Backend::tell() const {
  Numbers all{{"rank", rank_},     {"size", size_}, {"operations", 0}, {"bytes", 0},
              {"wait_seconds", 0}, {"seconds", 0},  {"bus_bytes", 0}};
  std::vector<int> ranks(static_cast<size_t>(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  addTo(all, *comm_, ranks);
  sent_->addTo(all);
  addTo(all, tally_->read(), size_);
  return {group_, getGroupDesc(), std::move(all)};
}

c10d::ErrorType Backend::getError() {
  const tuttiResult_t onHost = comm_->state(), result = onHost != tuttiSuccess ? onHost : gpu_->state();
  if (result == tuttiSuccess) return c10d::ErrorType::SUCCESS;
  if (result == tuttiTimeout) return c10d::ErrorType::TIMEOUT;
  return result == tuttiRemoteError ? c10d::ErrorType::REMOTE_ERROR : c10d::ErrorType::COMM_ERROR;
}

void Backend::stop(const std::exception_ptr& why) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) stopped_ = why;
}

void Backend::abort() {
  if (inChild()) return;
  Groups::ofThisProcess().remove(*this);
  const auto why = failure("the process group was aborted on this rank");
  stop(why);
  queue_->close(why);
  comm_->abort();
  sent_->abort(why);
  gpu_->abort(why);
}

void Backend::shutdown() {
  if (inChild()) return;
  Groups::ofThisProcess().remove(*this);
  const auto why = failure("the process group has been shut down");
  const milliseconds time = std::min(kLeave, milliseconds(timeoutMs_));
  stop(why);
  if (!queue_->drain(time)) {
    comm_->abort();
    queue_->drain(kLastWords);
  }
  sent_->drain(time);
  sent_->shutDown(why);
  sent_->drain(kLastWords);
  if (!gpu_->drain(time)) gpu_->abort(why);
}

// ---- monitoredBarrier --------------------------------------------------------------------------------------------

namespace {

std::string arrival(const std::string& round, int rank) { return round + "/" + std::to_string(rank); }

}  // namespace

// Those who have not come in time; the first, or all.
std::string Backend::missingAt(const std::string& round, milliseconds timeout, bool all) {
  const auto limit = std::chrono::steady_clock::now() + timeout;
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    const auto left = std::chrono::duration_cast<milliseconds>(limit - std::chrono::steady_clock::now());
    try {
      store_->wait({arrival(round, rank)}, std::max(left, milliseconds(1)));
    } catch (const std::exception&) {
      missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
      if (!all) break;
    }
  }
  return missing;
}

// What rank 0 has to say of it; nothing, when all have come.
std::string Backend::verdictOn(const std::string& round, milliseconds timeout, bool all) {
  if (timeout.count() == 0) return "Rank 0 timed out in monitoredBarrier after 0 ms";
  const std::string missing = missingAt(round, timeout, all);
  if (missing.empty()) return "";
  return c10::str(missing.find(',') == std::string::npos ? "Rank " : "Ranks ", missing,
                  " failed to pass monitoredBarrier in ", timeout.count(), " ms");
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) {
  constexpr milliseconds kGrace(2'000);  // rank 0 gives up first, and says who is missing
  const std::string round = "monitored_barrier/" + std::to_string(++barriers_), answer = round + "/answer";
  const milliseconds timeout = options.timeout == milliseconds(0) ? options.timeout : effective(options.timeout);
  if (rank_ == 0) {
    const std::string text = verdictOn(round, timeout, waitAllRanks);
    store_->set(answer, std::vector<uint8_t>(text.begin(), text.end()));
    if (!text.empty()) fail("[Rank 0]: " + text);
    return;
  }
  store_->set(arrival(round, rank_), std::vector<uint8_t>{1});
  try {
    store_->wait({answer}, timeout + kGrace);
  } catch (const std::exception&) {
    fail(c10::str("[Rank ", rank_, "]: Rank 0 failed to pass monitoredBarrier in ", timeout.count(), " ms"));
  }
  const auto text = store_->get(answer);
  if (!text.empty()) fail(c10::str("[Rank ", rank_, "]: ", std::string(text.begin(), text.end())));
}

}  // namespace tutti_torch
