#include "engine/stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "process/background_threads.h"
#include "process/fork.h"
#include "process/process_object.h"
#include "process/thread.h"

namespace tutti::engine {
namespace {

// Those of this process, for its end.
class OpenStreams {
 public:
  void add(Stream* stream) {
    std::lock_guard lock(mutex_);
    all_.push_back(stream);
  }
  void remove(Stream* stream) noexcept {
    std::lock_guard lock(mutex_);
    std::erase(all_, stream);
  }
  // Waits until nothing is queued on any of them. False: there still is, after so long.
  bool settle(std::chrono::milliseconds atMost) {
    const auto until = std::chrono::steady_clock::now() + atMost;
    while (!idle()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  bool idle() {
    std::lock_guard lock(mutex_);
    return std::ranges::all_of(all_, &Stream::idle);
  }

  std::mutex mutex_;  // guards what follows
  std::vector<Stream*> all_;
};

// What is queued gets so long before the library leaves, which it does at the very end otherwise and where calls get a
// second more. What has not ended by then fails.
constexpr std::chrono::milliseconds kForWork(200), kForFailing(10'000);

std::atomic<bool> overForThisProcess{false};

void atTheEndOfStreams() noexcept try {
  overForThisProcess.store(true, std::memory_order_relaxed);
  auto& streams = ofThisProcess<OpenStreams>();
  if (streams.settle(kForWork)) return;
  BackgroundThreads::instance().finish();
  streams.settle(kForFailing);
} catch (const std::exception&) {  // no memory: the process ends in any case
}

fork::Mutex registering;  // guards what follows; and exit's own lock, which a child would find taken
constinit bool registered = false;

// When the process ends, this comes before what was registered earlier: the static objects that the program had before
// its first stream, on which may work what is queued. Those that it made later go first.
void settleAtTheEnd() {
  const std::lock_guard lock(registering);
  if (!registered) registered = std::atexit(atTheEndOfStreams) == 0;
}

}  // namespace

void requireStreams() {
  if (overForThisProcess.load(std::memory_order_relaxed))
    throw Error(ErrorCode::kSystem, "the process is ending: nothing is queued on streams any more");
}

Stream::Stream() {
  requireStreams();
  settleAtTheEnd();
  ofThisProcess<OpenStreams>().add(this);
  try {
    thread_ = startThread([this] { work(); });
  } catch (...) {
    ofThisProcess<OpenStreams>().remove(this);
    throw;
  }
}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ofThisProcess<OpenStreams>().remove(this);
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
