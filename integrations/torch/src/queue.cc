#include "queue.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <system_error>

#include "errors.h"
#include "turn.h"

namespace tutti_torch {
namespace {

constexpr milliseconds kPatience(2'000);  // with callbacks that neither return nor begin or await an operation

}  // namespace

void Queue::submit(WorkPtr work, Body body) {
  Lock lock(state_->mutex);
  if (state_->closed) {
    lock.unlock();
    return work->end(state_->closed);
  }
  if (!work->about().async && state_->jobs.empty() && !state_->busy)
    return runHere(state_, lock, {std::move(work), std::move(body)});
  try {
    if (state_->threads.empty()) addThread(state_);
  } catch (...) {
    lock.unlock();
    return work->end(std::current_exception());
  }
  state_->jobs.push_back({std::move(work), std::move(body)});
  if (!state_->busy) callForHelp(state_);
  lock.unlock();
  Turn::passOn();
}

// For what is next. The lock is held. Where there can be no more threads, one of those that tell goes on when it is
// done.
void Queue::callForHelp(const StatePtr& state) {
  if (state->waiting > 0) return state->news.notify_all();
  try {
    addThread(state);
  } catch (const std::exception&) {
  }
}

// It has nothing to do until it has looked.
void Queue::addThread(const StatePtr& state) try {
  state->threads.emplace_back([state] { serve(state); });
  ++state->waiting;
} catch (const std::system_error& error) {
  fail(c10::str("a thread for operations could not be started: ", error.code().message()));
}

void Queue::serve(const StatePtr& state) {
  pthread_setname_np(pthread_self(), "tutti_torch");
  Lock lock(state->mutex);
  --state->waiting;
  while (!state->ends || !state->isDone()) {
    if (state->canTell()) {
      tellNext(state, lock);
    } else if (state->canRun()) {
      if (!state->ended.empty()) callForHelp(state);  // for somebody to see whether the callbacks under way ever end
      Job job = std::move(state->jobs.front());
      state->jobs.pop_front();
      const std::exception_ptr error = run(*state, lock, job);
      state->ended.push_back({std::move(job.work), error});
      state->news.notify_all();
    } else {
      awaitNews(*state, lock);
    }
  }
  state->news.notify_all();
}

void Queue::awaitNews(State& state, Lock& lock) {
  const auto isNew = [&] { return state.canTell() || state.canRun() || (state.ends && state.isDone()); };
  const uint64_t turn = state.turn;
  ++state.waiting;
  if (state.ended.empty()) {
    state.news.wait(lock, [&] { return isNew() || !state.ended.empty(); });
  } else if (!state.news.wait_for(lock, kPatience, [&] { return isNew() || state.turn != turn; })) {
    state.turn = 0;
    TORCH_WARN_ONCE("tutti: a callback of an operation has taken ", kPatience.count(),
                    " ms, and those of later operations begin now. Should callbacks begin operations from here on, "
                    "their order may differ between ranks.");
  }
  --state.waiting;
}

// What was wrong, if anything was.
std::exception_ptr Queue::run(State& state, Lock& lock, Job& job) {
  state.busy = true;
  lock.unlock();
  std::exception_ptr error;
  try {
    const at::AutoDispatchBelowADInplaceOrView noAutograd;  // results are written, not computed
    job.body();
  } catch (...) {
    error = std::current_exception();
  }
  job.body = nullptr;  // tensors go before anybody hears that all is done
  lock.lock();
  state.busy = false;
  return error;
}

// On the thread of the caller, who waits for it next. Nobody has its future yet, so it has no callbacks that others
// would have to wait for.
void Queue::runHere(const StatePtr& state, Lock& lock, Job job) {
  state->busy = true;
  lock.unlock();
  Turn::passOn();
  lock.lock();
  const std::exception_ptr error = run(*state, lock, job);
  if (state->canRun()) callForHelp(state);
  state->news.notify_all();
  lock.unlock();
  job.work->end(error);
}

void Queue::tellNext(const StatePtr& state, Lock& lock) {
  Ended next = std::move(state->ended.front());
  state->ended.pop_front();
  const uint64_t number = state->turn = ++state->turns;
  state->tellers.push_back(std::this_thread::get_id());
  if (state->canRun()) callForHelp(state);
  lock.unlock();
  {
    const Turn turn([&] {
      const Lock own(state->mutex);
      if (state->turn != number) return;
      state->turn = 0;
      if (state->canTell()) callForHelp(state);
    });
    next.work->end(next.error);
    next.work.reset();  // the last of it may be Python's, which wants its lock
  }
  lock.lock();
  state->tellers.erase(std::ranges::find(state->tellers, std::this_thread::get_id()));
  if (state->turn == number) state->turn = 0;
  state->news.notify_all();
}

bool Queue::drain(milliseconds time) {
  Turn::passOn();
  Lock lock(state_->mutex);
  const int own = static_cast<int>(std::ranges::count(state_->tellers, std::this_thread::get_id()));
  return state_->news.wait_for(lock, time, [&] {
    return state_->isDone() &&
           static_cast<int>(state_->tellers.size()) == own;  // who waits here in a callback does not count
  });
}

void Queue::close(const std::exception_ptr& why) {
  std::deque<Job> dropped;
  {
    const Lock lock(state_->mutex);
    if (!state_->closed) state_->closed = why;
    dropped.swap(state_->jobs);
  }
  for (const Job& job : dropped) job.work->end(why);
}

void Queue::forget() noexcept {
  new std::shared_ptr<State>(std::move(state_));  // never freed
}

Queue::~Queue() {
  if (!state_) return;
  Turn::passOn();
  close(failure("the process group was destroyed before this operation began"));
  std::vector<std::thread> threads;
  {
    const Lock lock(state_->mutex);
    state_->ends = true;
    threads.swap(state_->threads);
    state_->news.notify_all();
  }
  for (std::thread& thread : threads) thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
}

}  // namespace tutti_torch
