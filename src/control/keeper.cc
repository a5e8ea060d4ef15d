#include "control/keeper.h"

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

Keeper::Threads& Keeper::threads() {
  // Acquire: pairs with the exchange below, by which another thread of a forked child may have put its own here.
  Threads* now = threads_.load(std::memory_order_acquire);
  if (now->generation == fork::generation()) return *now;
  auto fresh = std::make_unique<Threads>();
  if (threads_.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *now;
}

// Needs the mutex.
void Keeper::reap(Threads& threads, std::list<Entry>& finished) {
  for (auto at = threads.entries.begin(); at != threads.entries.end();) {
    const auto here = at++;
    if (here->finished) finished.splice(finished.end(), threads.entries, here);
  }
}

void Keeper::run(Threads& threads, Entry& entry, std::shared_ptr<Kept> kept) {
  kept->run();
  kept.reset();
  std::lock_guard lock(threads.mutex);
  entry.finished = true;
  threads.changed.notify_all();
}

void Keeper::start(std::shared_ptr<Kept> kept) {
  Threads& mine = threads();
  std::list<Entry> finished;
  {
    std::lock_guard lock(mine.mutex);
    reap(mine, finished);
    const auto at = mine.entries.insert(mine.entries.end(), Entry{{}, kept, false});
    try {
      at->thread = std::thread([&mine, at, kept = std::move(kept)]() mutable { run(mine, *at, std::move(kept)); });
    } catch (const std::system_error& e) {
      mine.entries.erase(at);
      throw Error(ErrorCode::kSystem, fmt::format("cannot start a thread for the control plane: {}", e.what()));
    }
  }
  for (Entry& entry : finished) entry.thread.join();
}

void Keeper::tellAll(Threads& threads, void (Kept::*what)()) {
  std::vector<std::shared_ptr<Kept>> all;
  {
    std::lock_guard lock(threads.mutex);
    for (Entry& entry : threads.entries)
      if (auto kept = entry.kept.lock()) all.push_back(std::move(kept));
  }
  for (const auto& kept : all) ((*kept).*what)();
}

Keeper::~Keeper() {
  Threads* mine = threads_.load(std::memory_order_acquire);
  if (mine->generation != fork::generation()) return;  // a parent's: there is nothing here to wait for
  tellAll(*mine, &Kept::hurry);
  {
    std::unique_lock lock(mine->mutex);
    mine->changed.wait_for(lock, kLastWords, [&] {
      for (const Entry& entry : mine->entries)
        if (!entry.finished) return false;
      return true;
    });
  }
  tellAll(*mine, &Kept::halt);
  for (Entry& entry : mine->entries) entry.thread.join();
  delete mine;
}

}  // namespace tutti::control
