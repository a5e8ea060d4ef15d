// What a child made by fork() must not keep. It inherits every descriptor of its parent, and with it the parent's
// connections: a peer would not notice when the parent dies, because the child still holds the other end. So each
// descriptor that the library owns is noted, and in a child all of them are replaced by /dev/null right after the fork:
// the number stays taken, so that a later close() by its owner hits nothing else. Communicators remember the generation
// in which they were made, so that a child's call on one gets an error and not a broken state.
#pragma once
#include <cstdint>
#include <mutex>

namespace tutti::fork {

// Note and forget a descriptor; only what happens between the two is watched. Any thread; never fail.
void watch(int fd) noexcept;
void unwatch(int fd) noexcept;

// How many forks lie between this process and the one that first used the library. One relaxed load.
uint32_t generation() noexcept;

// How many children this process has begun to make: it is one more before what a child has is settled.
uint32_t children() noexcept;

// For what parent and child both go on using: a fork waits until nobody holds it, so that the child finds it free and
// what it guards whole. An object of namespace scope or a part of one, which lives as long as the process; nothing else
// is locked, and nobody is waited for, while it is held.
class Mutex {
 public:
  Mutex() noexcept;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend class AllMutexes;
  std::mutex mutex_;
  Mutex* next_ = nullptr;
};

}  // namespace tutti::fork
