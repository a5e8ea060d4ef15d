#include "process/fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

namespace tutti::fork {
namespace {

// Descriptors beyond this one are not watched: systems that allow more open files a process than that are rare.
constexpr int kMaxFd = 1 << 20;
constexpr int kBits = 64;

// Plain arrays of lock-free atomics: the handler runs between fork() and whatever the child does, where no lock may be
// taken and nothing allocated. Pages that were never written cost nothing.
std::array<std::atomic<uint64_t>, kMaxFd / kBits> owned;
std::atomic<int> highest{-1};
std::atomic<uint32_t> forks{0}, begun{0};

void replaceOwned() noexcept {
  forks.fetch_add(1, std::memory_order_relaxed);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int words = highest.load(std::memory_order_relaxed) / kBits;
  for (int word = 0; word <= words && highest.load(std::memory_order_relaxed) >= 0; ++word) {
    uint64_t rest = owned[static_cast<size_t>(word)].exchange(0, std::memory_order_relaxed);
    for (; rest != 0; rest &= rest - 1) {
      const int fd = word * kBits + std::countr_zero(rest);
      if (nothing < 0 || ::dup3(nothing, fd, O_CLOEXEC) < 0) ::close(fd);
    }
  }
  if (nothing >= 0) ::close(nothing);
}

}  // namespace

// What the thread that forks does with them. They are never fewer, and those that are added meanwhile it leaves alone.
class AllMutexes {
 public:
  static void add(Mutex* one) noexcept {
    one->next_ = last_.load(std::memory_order_relaxed);
    while (!last_.compare_exchange_weak(one->next_, one, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  static void lock() {
    held_ = last_.load(std::memory_order_acquire);  // pairs with the one that added it
    for (Mutex* one = held_; one != nullptr; one = one->next_) one->lock();
  }
  static void unlock() {
    for (Mutex* one = held_; one != nullptr; one = one->next_) one->unlock();
  }

 private:
  static constinit inline std::atomic<Mutex*> last_{nullptr};
  static constinit inline thread_local Mutex* held_ = nullptr;  // handlers of two forks may run at once
};

namespace {

void beforeFork() {
  begun.fetch_add(1);
  AllMutexes::lock();
}

void inChild() {
  AllMutexes::unlock();
  replaceOwned();
}

// Fails only for lack of memory when the library is loaded.
[[maybe_unused]] const int kRegistered = ::pthread_atfork(beforeFork, AllMutexes::unlock, inChild);

std::atomic<uint64_t>& wordOf(int fd) noexcept { return owned[static_cast<size_t>(fd / kBits)]; }
uint64_t bitOf(int fd) noexcept { return uint64_t{1} << (fd % kBits); }

}  // namespace

void watch(int fd) noexcept {
  if (fd < 0 || fd >= kMaxFd) return;
  wordOf(fd).fetch_or(bitOf(fd), std::memory_order_relaxed);
  int known = highest.load(std::memory_order_relaxed);
  while (known < fd && !highest.compare_exchange_weak(known, fd, std::memory_order_relaxed)) {
  }
}

void unwatch(int fd) noexcept {
  if (fd >= 0 && fd < kMaxFd) wordOf(fd).fetch_and(~bitOf(fd), std::memory_order_relaxed);
}

uint32_t generation() noexcept { return forks.load(std::memory_order_relaxed); }

uint32_t children() noexcept { return begun.load(); }

Mutex::Mutex() noexcept { AllMutexes::add(this); }

}  // namespace tutti::fork
