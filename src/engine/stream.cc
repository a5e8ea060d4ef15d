#include "engine/stream.h"

#include <utility>

namespace tutti::engine {

Stream::Stream() : thread_([this] { work(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::submit(std::function<void()> job) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
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
    auto job = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    std::optional<Error> failure;
    try {
      job();
    } catch (const Error& error) {
      failure = error;
    } catch (const std::exception& error) {
      failure = Error(ErrorCode::kInternal, error.what());
    }
    job = nullptr;  // what it holds is let go before anyone is told that it is done
    lock.lock();
    running_ = false;
    if (failure && !error_) error_ = std::move(failure);
    changed_.notify_all();
  }
}

}  // namespace tutti::engine
