// The shells behind handles. One whose thing has ended is remembered for as long as a thousand others take to end, so
// that using it is an error with a text and not a crash; then it is made anew for another thing, so that a process
// which makes and ends things for ever does not grow.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "process/fork.h"

namespace tutti::api {

// One shelf a kind of shell, never destroyed.
template <class Shell>
class HandlePool {
 public:
  // A fresh shell. It is the shelf's; whoever takes it puts it back at most once.
  Shell* take() {
    std::lock_guard lock(mutex_);
    if (ended_.size() <= kRemembered) return add(std::make_unique<Shell>());
    Shell* const oldest = ended_.front();
    spare_.splice(spare_.end(), ended_, ended_.begin());
    std::destroy_at(oldest);
    return std::construct_at(oldest);
  }

  // Whether this pointer, whatever it is, is or was a shell of this shelf's. Reads nothing through it. Shells are never
  // freed: what was one once needs no lock to be known again.
  bool holds(const Shell* shell) {
    std::atomic<const Shell*>& last = known_[reinterpret_cast<uintptr_t>(shell) / sizeof(Shell) % known_.size()];
    if (shell == nullptr || shell == last.load(std::memory_order_relaxed)) return shell != nullptr;
    if (!isOurs(shell)) return false;
    last.store(shell, std::memory_order_relaxed);
    return true;
  }

  // The way back needs no memory: a destructor may take it.
  void putBack(Shell* ended) noexcept {
    std::lock_guard lock(mutex_);
    spare_.front() = ended;
    ended_.splice(ended_.end(), spare_, spare_.begin());
  }

 private:
  bool isOurs(const Shell* shell) {
    std::lock_guard lock(mutex_);
    return all_.contains(shell);
  }

  Shell* add(std::unique_ptr<Shell> made) {
    Shell* const shell = made.get();
    spare_.push_back(nullptr);
    all_.emplace(shell, std::move(made));
    return shell;
  }

  std::array<std::atomic<const Shell*>, 8> known_{};  // some that are: each at the place of its address
  static constexpr size_t kRemembered = 1024;
  fork::Mutex mutex_;                // guards what follows
  std::list<Shell*> ended_, spare_;  // spare_: a place in ended_ for each shell that is out
  std::unordered_map<const Shell*, std::unique_ptr<Shell>> all_;
};

// Made when the library is loaded; outlives every thread of the program.
template <class Shell>
inline HandlePool<Shell>& poolOf = *new HandlePool<Shell>;

}  // namespace tutti::api
