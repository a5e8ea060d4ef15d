#include "queue.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <pthread.h>

#include <new>
#include <system_error>

#include "errors.h"

namespace tutti_torch {

void Queue::submit(const WorkPtr& work, Body body) {
  Lock lock(state_->mutex);
  if (state_->closed) {
    lock.unlock();
    return work->end(state_->closed);
  }
  if (!work->about().async && state_->jobs.empty() && !state_->busy)
    return perform(state_, lock, {work, std::move(body)});
  try {
    if (state_->threads.empty()) addThread(state_);
  } catch (...) {
    lock.unlock();
    return work->end(std::current_exception());
  }
  state_->jobs.push_back({work, std::move(body)});
  if (!state_->busy) callForHelp(state_);
}

// For what is next, while nothing runs. The lock is held. Where there can be no more threads, one of those that tell
// goes on when it is done.
void Queue::callForHelp(const std::shared_ptr<State>& state) {
  if (state->waiting > 0) return state->news.notify_all();
  try {
    addThread(state);
  } catch (const std::exception&) {
  }
}

// It waits from now on, as far as others know.
void Queue::addThread(const std::shared_ptr<State>& state) try {
  state->threads.emplace_back([state] { serve(state); });
  ++state->waiting;
} catch (const std::system_error& error) {
  fail(c10::str("a thread for operations could not be started: ", error.code().message()));
}

// Asked by a thread that waits, when there is something to do.
bool Queue::isLeftToOthers(State& state, Lock& lock) {
  if (state.waiting > 1 || state.telling == 0) return false;
  const auto isOver = [&] { return state.busy || state.jobs.empty(); };
  state.news.wait_for(lock, milliseconds(state.telling), [&] { return isOver() || state.telling == 0; });
  return isOver();
}

void Queue::serve(const std::shared_ptr<State>& state) {
  pthread_setname_np(pthread_self(), "tutti_torch");
  Lock lock(state->mutex);
  for (;; ++state->waiting) {
    do {
      state->news.wait(lock, [&] { return !state->busy && (state->ends || !state->jobs.empty()); });
    } while (!state->jobs.empty() && isLeftToOthers(*state, lock));
    --state->waiting;
    if (state->jobs.empty()) return;
    Job job = std::move(state->jobs.front());
    state->jobs.pop_front();
    perform(state, lock, std::move(job));
  }
}

void Queue::perform(const std::shared_ptr<State>& state, Lock& lock, Job job) {
  state->busy = true;
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
  state->busy = false;
  ++state->telling;
  if (!state->jobs.empty()) callForHelp(state);
  lock.unlock();
  job.work->end(error);
  lock.lock();
  --state->telling;
  state->news.notify_all();
}

bool Queue::drain(milliseconds time) {
  Lock lock(state_->mutex);
  return state_->news.wait_for(lock, time,
                               [this] { return state_->jobs.empty() && !state_->busy && state_->telling == 0; });
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
