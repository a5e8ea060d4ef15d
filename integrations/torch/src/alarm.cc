#include "alarm.h"

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "errors.h"

namespace tutti_torch {
namespace {

class Alarms {
 public:
  void set(TimePoint when, std::function<void()> ring) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(started_, true)) start();
    alarms_.emplace(when, std::move(ring));
    news_.notify_one();
  }

 private:
  void start() try {
    std::thread([this] { work(); }).detach();
  } catch (const std::system_error& error) {
    started_ = false;
    fail(c10::str("a thread for deadlines could not be started: ", error.code().message()));
  }

  void work() {
    pthread_setname_np(pthread_self(), "tutti_torch_at");
    for (std::unique_lock lock(mutex_);;) {
      if (alarms_.empty()) {
        news_.wait(lock);
      } else if (const TimePoint next = alarms_.begin()->first; next > std::chrono::steady_clock::now()) {
        news_.wait_until(lock, next);
      } else {
        const auto ring = std::move(alarms_.extract(alarms_.begin()).mapped());
        lock.unlock();
        ring();
        lock.lock();
      }
    }
  }

  std::mutex mutex_;  // guards what follows
  std::condition_variable news_;
  std::multimap<TimePoint, std::function<void()>> alarms_;
  bool started_ = false;
};

// Never freed: its thread lives as long as the process. A child made by fork has alarms of its own, for the thread is
// not there, and the mutex may be held for ever.
Alarms& ofThisProcess() {
  static Alarms* alarms = new Alarms;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { alarms = new Alarms; });
  static_cast<void>(registered);
  return *alarms;
}

}  // namespace

void setAlarm(TimePoint when, std::function<void()> ring) { ofThisProcess().set(when, std::move(ring)); }

}  // namespace tutti_torch
