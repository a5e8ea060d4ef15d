#include "control/keeper.h"

#include <unistd.h>

#include <chrono>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kLastWords(10);

}  // namespace

Keeper& Keeper::instance() {
  static Keeper keeper;
  return keeper;
}

Keeper::Keeper() : pid_(::getpid()) {}

// Needs mutex_.
void Keeper::reap(std::list<Entry>& finished) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto here = at++;
    if (here->finished) finished.splice(finished.end(), entries_, here);
  }
}

void Keeper::start(std::shared_ptr<Kept> kept) {
  std::list<Entry> finished;
  std::list<Entry>::iterator at;
  {
    std::lock_guard lock(mutex_);
    reap(finished);
    at = entries_.insert(entries_.end(), Entry{{}, kept, false});
    try {
      at->thread = std::thread([this, at, mine = std::move(kept)]() mutable {
        mine->run();
        mine.reset();
        std::lock_guard inner(mutex_);
        at->finished = true;
        changed_.notify_all();
      });
    } catch (const std::system_error& e) {
      entries_.erase(at);
      throw Error(ErrorCode::kSystem, fmt::format("cannot start a thread for the control plane: {}", e.what()));
    }
  }
  for (Entry& entry : finished) entry.thread.join();
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

Keeper::~Keeper() {
  if (::getpid() != pid_) {
    // A child made by fork has none of the threads: there is nothing to wait for, and nothing to destroy safely.
    new std::list<Entry>(std::move(entries_));
    return;
  }
  tellAll(&Kept::hurry);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastWords, [&] {
      for (const Entry& entry : entries_)
        if (!entry.finished) return false;
      return true;
    });
  }
  tellAll(&Kept::halt);
  for (Entry& entry : entries_) entry.thread.join();
}

}  // namespace tutti::control
