#include "emulation/device/workers.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace tutti::emulation {
namespace {

struct Workers {
  std::mutex mutex;
  std::condition_variable given;
  std::deque<std::function<void()>> tasks;
  size_t idle = 0;
};

Workers& workers() {
  static auto* const workers = new Workers;  // outlives every thread of the program
  return *workers;
}

void work() {
  Workers& all = workers();
  std::unique_lock lock(all.mutex);
  for (;;) {
    ++all.idle;
    all.given.wait(lock, [&] { return !all.tasks.empty(); });
    --all.idle;
    auto task = std::move(all.tasks.front());
    all.tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the next one comes
    lock.lock();
  }
}

}  // namespace

void runOnWorker(std::function<void()> task) {
  Workers& all = workers();
  const std::lock_guard lock(all.mutex);
  all.tasks.push_back(std::move(task));
  if (all.tasks.size() > all.idle)
    std::thread(work).detach();
  else
    all.given.notify_one();
}

}  // namespace tutti::emulation
