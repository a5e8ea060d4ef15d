#include "engine/stream.h"

#include <new>
#include <utility>

#include "process/thread.h"

namespace tutti::engine {

Stream::Stream() : thread_(startThread([this] { work(); })) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::submit(Job job) noexcept {
  {
    std::lock_guard lock(mutex_);
    queue_.splice(queue_.end(), job);
  }
  changed_.notify_all();
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !running_; });
  if (error_) throw *std::exchange(error_, std::nullopt);
}

bool Stream::idle() {
  std::lock_guard lock(mutex_);
  return queue_.empty() && !running_;
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Job next;
    next.splice(next.end(), queue_, queue_.begin());
    running_ = true;
    lock.unlock();
    std::optional<Error> failure;
    try {
      next.front()();
    } catch (const Error& error) {
      failure = error;
    } catch (const std::bad_alloc&) {
      failure = outOfMemory;
    } catch (const std::exception& error) {
      failure = errorOrOutOfMemory([&] { return Error(ErrorCode::kInternal, error.what()); });
    }
    next.clear();  // what it holds is let go before anyone is told that it is done
    lock.lock();
    running_ = false;
    if (failure && !error_) error_ = std::move(failure);
    changed_.notify_all();
  }
}

}  // namespace tutti::engine
