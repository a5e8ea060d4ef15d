#include "process/keeper.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "process/log.h"
#include "process/process_object.h"
#include "process/thread.h"

namespace tutti {
namespace {

constexpr std::chrono::seconds kLastWords(10);

// In a child made by fork its parent's keeper is none of its business, and its own may have nothing to end.
void atTheEnd() noexcept {
  try {
    Keeper::instance().finish();
  } catch (const std::exception&) {  // no memory: the process ends in any case
  }
}

// Registered when the library is loaded, before any static object of the program is made: they go first, and their
// communicators leave in good order. Fails only for lack of memory.
[[maybe_unused]] const int kRegistered = std::atexit(atTheEnd);

}  // namespace

Keeper& Keeper::instance() { return ofThisProcess<Keeper>(); }

// Needs the mutex.
void Keeper::reap(Finished& finished) noexcept {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto here = at++;
    if (here->finished) finished.entries.splice(finished.entries.end(), entries_, here);
  }
}

Keeper::Finished::~Finished() {
  for (Entry& entry : entries) entry.thread.join();
}

void Keeper::run(Entry& entry, std::shared_ptr<Kept> kept) {
  try {
    kept->run();
  } catch (const std::exception& e) {
    log::warn("a thread of the library's has ended: {}", e.what());
  }
  kept.reset();
  std::lock_guard lock(mutex_);
  entry.finished = true;
  changed_.notify_all();
}

void Keeper::start(std::shared_ptr<Kept> kept) {
  std::list<Entry> fresh;
  Entry& entry = fresh.emplace_back(Entry{{}, kept, false});
  Finished finished;
  std::lock_guard lock(mutex_);
  if (ending_) throw Error(ErrorCode::kSystem, "the process is ending");
  reap(finished);
  entry.thread = startThread([this, &entry, kept = std::move(kept)]() mutable { run(entry, std::move(kept)); });
  entries_.splice(entries_.end(), fresh);
}

void Keeper::tellAll(void (Kept::*what)()) {
  std::vector<std::shared_ptr<Kept>> all;
  {
    std::lock_guard lock(mutex_);
    for (Entry& entry : entries_)
      if (auto kept = entry.kept.lock()) all.push_back(std::move(kept));
  }
  for (const auto& kept : all) ((*kept).*what)();
}

void Keeper::finish() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;  // so that the list stays as it is
  }
  tellAll(&Kept::hurry);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastWords,
                      [&] { return std::ranges::all_of(entries_, [](const Entry& entry) { return entry.finished; }); });
  }
  tellAll(&Kept::halt);
  for (Entry& entry : entries_)
    if (entry.thread.joinable()) entry.thread.join();
}

}  // namespace tutti
