#include "process/background_threads.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "process/link_sockets.h"
#include "process/log.h"
#include "process/process_object.h"
#include "process/thread.h"

namespace tutti {
namespace {

// What there is in all, and after what of it the links of this process are no longer of use to anybody.
constexpr std::chrono::milliseconds kLastWords(10'000), kLastCalls(1'100);

// In a child made by fork its parent's threads are none of its business, and its own may have nothing to end.
void atTheEnd() noexcept {
  try {
    BackgroundThreads::instance().finish();
  } catch (const std::exception&) {  // no memory: the process ends in any case
  }
  emptyLinkSockets();
}

// Registered when the library is loaded, before any static object of the program is made: they go first, and their
// communicators leave in good order. Fails only for lack of memory.
[[maybe_unused]] const int kRegistered = std::atexit(atTheEnd);

}  // namespace

BackgroundThreads& BackgroundThreads::instance() { return ofThisProcess<BackgroundThreads>(); }

// Needs the mutex.
void BackgroundThreads::reap(Finished& finished) noexcept {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto here = at++;
    if (here->finished) finished.entries.splice(finished.entries.end(), entries_, here);
  }
}

BackgroundThreads::Finished::~Finished() {
  for (Entry& entry : entries) entry.thread.join();
}

void BackgroundThreads::run(Entry& entry, std::shared_ptr<Service> service) {
  try {
    service->run();
  } catch (const std::exception& e) {
    log::warn("a thread of the library's has ended: {}", e.what());
  }
  service.reset();
  std::lock_guard lock(mutex_);
  entry.finished = true;
  changed_.notify_all();
}

void BackgroundThreads::start(std::shared_ptr<Service> service) {
  std::list<Entry> fresh;
  Entry& entry = fresh.emplace_back(Entry{{}, service, false});
  Finished finished;
  std::lock_guard lock(mutex_);
  if (ending_) throw Error(ErrorCode::kSystem, "the process is ending");
  reap(finished);
  entry.thread =
      startThread([this, &entry, service = std::move(service)]() mutable { run(entry, std::move(service)); });
  entries_.splice(entries_.end(), fresh);
}

void BackgroundThreads::tellAll(void (Service::*what)()) {
  std::vector<std::shared_ptr<Service>> all;
  {
    std::lock_guard lock(mutex_);
    for (Entry& entry : entries_)
      if (auto service = entry.service.lock()) all.push_back(std::move(service));
  }
  for (const auto& service : all) ((*service).*what)();
}

void BackgroundThreads::awaitAll(std::chrono::milliseconds atMost) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, atMost,
                    [&] { return std::ranges::all_of(entries_, [](const Entry& entry) { return entry.finished; }); });
}

void BackgroundThreads::finish() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;  // so that the list stays as it is
  }
  tellAll(&Service::hurry);
  awaitAll(kLastCalls);
  endLinkSockets();
  awaitAll(kLastWords - kLastCalls);
  tellAll(&Service::halt);
  for (Entry& entry : entries_)
    if (entry.thread.joinable()) entry.thread.join();
}

}  // namespace tutti
