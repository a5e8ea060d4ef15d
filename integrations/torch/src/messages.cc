#include "messages.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "calls.h"
#include "dense.h"
#include "errors.h"
#include "turn.h"

namespace tutti_torch {
namespace {

using std::chrono::steady_clock;

// A receiving thread waits for the next header as long as somebody wants a message. Receives have deadlines of their
// own.
constexpr milliseconds kForEver = milliseconds::max();
constexpr milliseconds kFirstLook(1), kLongestLook(20);
constexpr milliseconds kJoin(60'000);  // both ends are there

int64_t bytesOf(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

std::string describe(int64_t bytes, int from, int64_t tag) {
  return c10::str("a message of ", bytes, " bytes from rank ", from, " with tag ", tag);
}

// What fails on the way between two ranks calls the sender 0 and the receiver 1, as that way's communicator does.
template <class Body>
auto onWay(int from, int to, Body&& body) {
  try {
    return body();
  } catch (...) {
    fail(c10::str("a message from rank ", from, " to rank ", to,
                  " failed. In what follows they are 0 and 1: ", textOf(std::current_exception())));
  }
}

void checkSize(int from, int64_t tag, int64_t sent, int64_t expected) {
  if (sent != expected) fail(c10::str(describe(sent, from, tag), " came where ", expected, " bytes were expected"));
}

}  // namespace

Messages::Messages(c10::intrusive_ptr<c10d::Store> store, int rank, int size, std::string group,
                   std::function<std::exception_ptr()> failureOf)
    : given_(std::move(store)), rank_(rank), size_(size), group_(std::move(group)), failureOf_(std::move(failureOf)) {}

void Messages::close() {
  stop(failure("the process group was destroyed"), false);
  std::vector<std::thread> threads;
  std::shared_ptr<Queue> late;
  {
    Lock lock(mutex_);
    news_.wait(lock, [this] { return nobodyElseTells(); });
    late.swap(late_);
    threads.swap(relieved_);
    for (auto& [from, way] : in_) threads.push_back(std::move(way.thread));
  }
  for (std::thread& thread : threads) {
    if (!thread.joinable()) continue;
    thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
  }
  out_.clear();
}

namespace {

// Stores of old versions, and those that are written in Python, have no more than one client.
template <class Store>
c10::intrusive_ptr<c10d::Store> clientOf(const c10::intrusive_ptr<Store>& store) {
  if constexpr (requires { store->clone(); }) try {
      if (auto own = store->clone()) return own;
    } catch (const std::exception&) {
    }
  return store;
}

}  // namespace

c10d::Store& Messages::store() {
  std::call_once(cloned_, [this] { store_ = clientOf(given_); });
  return *store_;
}

std::string Messages::key(const char* what, int from, int to) const {
  return c10::str("message/", what, "/", from, ">", to);
}

// False when everything is over.
bool Messages::pause(Lock& lock, milliseconds time) {
  return !news_.wait_for(lock, time, [this] { return closed_ != nullptr; });
}

// ---- Sending -----------------------------------------------------------------------------------------------------

void Messages::send(const WorkPtr& work, int to, int tag) {
  Lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    return work->end(closed_);
  }
  auto& way = out_[to];
  if (!way) way = std::make_unique<WayOut>();
  WayOut& open = *way;
  lock.unlock();
  const at::Tensor tensor = work->about().inputs.front();
  const milliseconds timeout = work->about().timeout;
  const Header header{tag, bytesOf(tensor)};
  open.queue.submit(work, [this, &open, to, header, tensor, timeout] { sendNow(open, to, header, tensor, timeout); });
}

void Messages::sendNow(WayOut& way, int to, const Header& header, const at::Tensor& tensor, milliseconds timeout) {
  if (!way.comm) openTo(way, to, timeout);
  const Dense dense(tensor, Use::kRead);
  Calls calls(way.comm->get(), timeout);
  onWay(rank_, to, [&] {
    calls.send(&header, sizeof header, 1);
    if (header.bytes > 0) calls.send(dense.data(), static_cast<size_t>(header.bytes), 1);
  });
}

// The receiver makes the id once it wants something: so none can expire before it is used.
void Messages::openTo(WayOut& way, int to, milliseconds timeout) {
  store().set(key("hello", rank_, to), std::vector<uint8_t>{1});
  const std::string id = key("id", rank_, to);
  const auto limit = steady_clock::now() + timeout;
  for (milliseconds look = kFirstLook; !store().check({id}); look = std::min(2 * look, kLongestLook)) {
    if (steady_clock::now() > limit)
      tutti_torch::fail(c10::str("rank ", to, " has received nothing from rank ", rank_, " within ", timeout.count(),
                                 " ms, the timeout of this send in group ", group_));
    if (const auto why = failureOf_()) std::rethrow_exception(why);
    Lock lock(mutex_);
    if (!pause(lock, look)) std::rethrow_exception(closed_);
  }
  join(way.comm, fromBytes(store().get(id)), rank_, to);
}

// Whoever stops everything finds it in its place, and ends joining with it. Without the lock.
void Messages::join(std::shared_ptr<Communicator>& place, const tuttiUniqueId& id, int from, int to) {
  const std::string name = c10::str(group_, ", messages from ", from, " to ", to);
  const auto comm = std::make_shared<Communicator>(id, rank_ == from ? 0 : 1, 2, kJoin, name);
  {
    const Lock lock(mutex_);
    if (closed_) std::rethrow_exception(closed_);
    place = comm;
  }
  onWay(from, to, [&] { comm->awaitAll(); });
}

void Messages::drain(milliseconds time) {
  std::vector<Queue*> queues;
  {
    const Lock lock(mutex_);
    for (const auto& [to, way] : out_) queues.push_back(&way->queue);
    if (late_) queues.push_back(late_.get());
  }
  const auto limit = steady_clock::now() + time;
  for (Queue* const queue : queues)
    queue->drain(std::max(std::chrono::duration_cast<milliseconds>(limit - steady_clock::now()), milliseconds(0)));
  Lock lock(mutex_);
  if (closed_) news_.wait_until(lock, limit, [this] { return nobodyElseTells(); });
}

void Messages::addTo(Numbers& all) const {
  std::vector<std::pair<std::shared_ptr<Communicator>, std::vector<int>>> ways;  // with the ranks at its ends
  {
    const Lock lock(mutex_);
    for (const auto& [to, way] : out_) ways.push_back({way->comm, {rank_, to}});
    for (const auto& [from, way] : in_) ways.push_back({way.comm, {from, rank_}});
  }
  for (const auto& [comm, ends] : ways)
    if (comm) tutti_torch::addTo(all, *comm, ends);
}

// ---- Receiving ---------------------------------------------------------------------------------------------------

void Messages::recv(const WorkPtr& work, int from, int tag) {
  const Wanted wanted{work, from, tag, steady_clock::now() + std::min(work->about().timeout, kLongest)};
  Lock lock(mutex_);
  if (const auto aside = takeAside(lock, wanted)) return aside->work->end(aside->error);
  const std::exception_ptr why = want(wanted);
  lock.unlock();
  if (why) return work->end(why);
  news_.notify_all();
  Turn::passOn();
}

// What stands against it, or null.
std::exception_ptr Messages::want(const Wanted& wanted) try {
  if (closed_) return closed_;
  if (const auto broken = openWays(wanted.from)) return broken;
  watch(wanted.deadline);
  wanted_.push_back(wanted);
  return nullptr;
} catch (const std::exception&) {
  return std::current_exception();
}

// Why a message can come by none of them.
std::exception_ptr Messages::openWays(int from) {
  std::exception_ptr broken;
  bool open = false;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || (from != rank && from != kAnySource)) continue;
    const WayIn& way = wayFrom(rank);
    if (way.broken) broken = way.broken;
    open = open || !way.broken;
  }
  return open ? nullptr : broken;
}

Messages::WayIn& Messages::wayFrom(int from) {
  WayIn& way = in_[from];
  if (!way.thread.joinable() && !way.broken) serve(from, way);
  return way;
}

// The thread keeps this as long as it lives: the last of the group may go in a callback there.
void Messages::serve(int from, WayIn& way) {
  way.thread = std::thread([self = shared_from_this(), from, &way] { self->receive(from, way); });
}

// With the lock held; if there is such a message, it is free afterwards.
std::optional<Messages::Outcome> Messages::takeAside(Lock& lock, const Wanted& wanted) {
  const auto found = std::find_if(aside_.begin(), aside_.end(), [&](const Aside& one) {
    return one.tag == wanted.tag && (wanted.from == kAnySource || wanted.from == one.from);
  });
  if (found == aside_.end()) return std::nullopt;
  const Aside message = std::move(*found);
  aside_.erase(found);
  lock.unlock();
  wanted.work->cameFrom(message.from);
  Outcome outcome{wanted.work, nullptr, nullptr};
  try {
    const at::AutoDispatchBelowADInplaceOrView noAutograd;
    const Dense dense(wanted.work->about().outputs.front(), Use::kWrite);
    checkSize(message.from, message.tag, bytesOf(message.bytes), bytesOf(dense.memory()));
    if (message.bytes.numel() > 0) std::memcpy(dense.data(), message.bytes.data_ptr(), message.bytes.nbytes());
    dense.writeBack();
  } catch (...) {
    outcome.error = std::current_exception();
  }
  return outcome;
}

bool Messages::isWanted(int from) const {
  return std::any_of(wanted_.begin(), wanted_.end(),
                     [=](const Wanted& one) { return one.from == kAnySource || one.from == from; });
}

std::list<Messages::Wanted>::iterator Messages::findWanted(int from, int64_t tag) {
  return std::find_if(wanted_.begin(), wanted_.end(), [=](const Wanted& one) {
    return one.tag == tag && (one.from == kAnySource || one.from == from);
  });
}

// With the lock held. The last reference to its work may be Python's, which is gone when the process ends: so whoever
// ends waits for the thread that has it, until hasTold().
Messages::Wanted Messages::take(std::list<Wanted>::iterator wanted) {
  tellers_.push_back(std::this_thread::get_id());
  Wanted taken = std::move(*wanted);
  wanted_.erase(wanted);
  return taken;
}

// With the lock held.
void Messages::hasTold() {
  std::erase(tellers_, std::this_thread::get_id());
  news_.notify_all();
}

// With the lock held. Who waits in a callback does not wait for itself.
bool Messages::nobodyElseTells() const {
  return std::ranges::all_of(tellers_, [own = std::this_thread::get_id()](auto teller) { return teller == own; });
}

void Messages::receive(int from, WayIn& way) {
  pthread_setname_np(pthread_self(), "tutti_torch_in");
  Lock lock(mutex_);
  try {
    for (;;) {
      news_.wait(lock, [&] { return closed_ || isWanted(from); });
      if (closed_) std::rethrow_exception(closed_);
      if (!way.comm) openFrom(way, from, lock);
      if (!way.comm) continue;
      Outcome outcome = takeOne(from, *way.comm, lock);
      if (outcome.broken) way.broken = outcome.broken;
      lock.unlock();
      if (!tell(from, way, std::move(outcome))) return;
      lock.lock();
      if (way.broken) std::rethrow_exception(way.broken);
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    way.broken = std::current_exception();
  }
  lock.unlock();
  fail(from, way.broken);
}

// False when another thread receives from now on.
bool Messages::tell(int from, WayIn& way, Outcome outcome) {
  if (!outcome.work) return true;
  bool receives = true;  // guarded by the mutex
  {
    const Turn turn([&] {
      const Lock lock(mutex_);
      if (!receives || closed_ || way.broken) return;
      std::thread self = std::move(way.thread);
      try {
        serve(from, way);
      } catch (const std::exception&) {  // there can be no more threads: this one goes on when it is back
        way.thread = std::move(self);
        return;
      }
      relieved_.push_back(std::move(self));
      receives = false;
    });
    outcome.work->end(outcome.error);
    outcome.work.reset();  // the last of it may be Python's, which wants its lock
  }
  const Lock lock(mutex_);
  hasTold();
  return receives;
}

// There is none yet when nobody wants anything any more.
void Messages::openFrom(WayIn& way, int from, Lock& lock) {
  const std::string hello = key("hello", from, rank_);
  for (milliseconds look = kFirstLook;; look = std::min(2 * look, kLongestLook)) {
    lock.unlock();
    const bool greeted = store().check({hello});
    const auto why = greeted ? nullptr : failureOf_();
    lock.lock();
    if (greeted) break;
    if (why) std::rethrow_exception(why);
    if (!pause(lock, look)) std::rethrow_exception(closed_);
    if (!isWanted(from)) return;
  }
  lock.unlock();
  const tuttiUniqueId id = newId();
  store().set(key("id", from, rank_), toBytes(id));
  join(way.comm, id, from, rank_);
  lock.lock();
}

void Messages::takeInto(Communicator& comm, int from, const at::Tensor& memory, const Header& header,
                        milliseconds timeout) {
  if (header.bytes == 0) return;
  onWay(from, rank_, [&] { Calls(comm.get(), timeout).recv(memory.data_ptr(), static_cast<size_t>(header.bytes), 0); });
}

// The next message of that way. The lock is held before and after.
Messages::Outcome Messages::takeOne(int from, Communicator& comm, Lock& lock) {
  Header header{};
  lock.unlock();
  onWay(from, rank_, [&] { Calls(comm.get(), kForEver).recv(&header, sizeof header, 0); });
  lock.lock();
  // Its receive may have been given up meanwhile; the next one may be for it.
  news_.wait(lock, [&] { return closed_ || isWanted(from); });
  if (closed_) std::rethrow_exception(closed_);
  if (const auto found = findWanted(from, header.tag); found != wanted_.end()) {
    const Wanted wanted = take(found);
    lock.unlock();
    Outcome outcome = deliver(comm, from, header, wanted);
    lock.lock();
    return outcome;
  }
  lock.unlock();
  const at::Tensor bytes = at::empty({header.bytes}, at::kByte);
  takeInto(comm, from, bytes, header, kForEver);
  lock.lock();
  aside_.push_back({from, header.tag, bytes});
  const auto meanwhile = findWanted(from, header.tag);
  if (meanwhile == wanted_.end()) return {};
  const Wanted wanted = take(meanwhile);
  Outcome outcome = *takeAside(lock, wanted);
  lock.lock();
  return outcome;
}

// What is of another size than expected is taken all the same: the next message comes behind it.
Messages::Outcome Messages::deliver(Communicator& comm, int from, const Header& header, const Wanted& wanted) {
  wanted.work->cameFrom(from);
  Outcome outcome{wanted.work, nullptr, nullptr};
  bool taken = false;
  try {
    const at::AutoDispatchBelowADInplaceOrView noAutograd;
    const Dense dense(wanted.work->about().outputs.front(), Use::kWrite);
    const bool fits = bytesOf(dense.memory()) == header.bytes;
    const at::Tensor memory = fits ? dense.memory() : at::empty({header.bytes}, at::kByte);
    takeInto(comm, from, memory, header, wanted.work->about().timeout);
    taken = true;
    checkSize(from, header.tag, header.bytes, bytesOf(dense.memory()));
    dense.writeBack();
  } catch (...) {
    outcome.error = std::current_exception();
    if (!taken) outcome.broken = outcome.error;
  }
  return outcome;
}

// No deadline of tutti's sees to receives, and who awaits one by its future alone does not come to ask.
void Messages::watch(TimePoint deadline) {
  if (!alarms_.empty() && *alarms_.begin() <= deadline) return;  // at which this one is looked at, too
  setAlarm(deadline, [self = weak_from_this()] {
    if (const auto messages = self.lock()) messages->endLate();
  });
  alarms_.insert(deadline);
}

// Callbacks may take their time, and the last of a work may be Python's, which wants its lock: both are the queue's.
void Messages::endLate() {
  Lock lock(mutex_);
  if (closed_) return;
  std::list<Wanted> late = takeLate();
  tellers_.push_back(std::this_thread::get_id());
  lock.unlock();
  for (Wanted& one : late) {
    const auto why = lateness(one);
    late_->submit(std::move(one.work), [why] { std::rethrow_exception(why); });
  }
  lock.lock();
  hasTold();
}

std::list<Messages::Wanted> Messages::takeLate() {
  std::list<Wanted> late;
  const auto now = steady_clock::now();
  alarms_.erase(alarms_.begin(), alarms_.upper_bound(now));
  for (auto one = wanted_.begin(); one != wanted_.end();) {
    const auto here = one++;
    if (here->deadline <= now) late.splice(late.end(), wanted_, here);
  }
  if (!wanted_.empty()) watch(std::ranges::min(wanted_, {}, &Wanted::deadline).deadline);
  return late;
}

std::exception_ptr Messages::lateness(const Wanted& wanted) const {
  const std::string who = wanted.from == kAnySource ? "no rank has" : c10::str("rank ", wanted.from, " has not");
  return failure(c10::str("timeout: ", who, " sent rank ", rank_, " a message with tag ", wanted.tag, " within ",
                          wanted.work->about().timeout.count(), " ms, the timeout of this receive in group ", group_));
}

// ---- The end -----------------------------------------------------------------------------------------------------

// What may come from nobody else.
void Messages::fail(int from, const std::exception_ptr& why) {
  std::list<Wanted> failed;
  {
    const Lock lock(mutex_);
    const bool others = !closed_ && std::any_of(in_.begin(), in_.end(), [](const auto& way) {
      return !way.second.broken;  // for who takes from any, there is one of each rank
    });
    for (auto one = wanted_.begin(); one != wanted_.end();) {
      const auto next = std::next(one);
      if (one->from == from || (one->from == kAnySource && !others)) failed.splice(failed.end(), wanted_, one);
      one = next;
    }
    tellers_.push_back(std::this_thread::get_id());
  }
  for (const Wanted& one : failed) one.work->end(why);
  failed.clear();
  const Lock lock(mutex_);
  hasTold();
}

void Messages::stop(const std::exception_ptr& why, bool atOnce) {
  std::vector<std::shared_ptr<Communicator>> comms;
  std::vector<WayOut*> ways;
  {
    const Lock lock(mutex_);
    if (!closed_) closed_ = why;
    for (const auto& [from, way] : in_) comms.push_back(way.comm);
    for (const auto& [to, way] : out_) ways.push_back(way.get());
  }
  news_.notify_all();
  for (WayOut* const way : ways) {
    way->queue.close(why);
    if (!atOnce && way->queue.drain(milliseconds(0))) continue;
    const Lock lock(mutex_);
    comms.push_back(way->comm);
  }
  for (const auto& comm : comms)
    if (comm) comm->abort();
  std::list<Wanted> left;
  {
    const Lock lock(mutex_);
    left.swap(wanted_);
  }
  for (const Wanted& one : left) one.work->end(why);
}

}  // namespace tutti_torch
