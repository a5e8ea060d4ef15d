#include "engine/sleeper.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

namespace tutti::engine {
namespace {

// As the kernel has it since 5.16 (futex_waitv); older headers lack it.
struct FutexWait {
  uint64_t value;
  uint64_t address;
  uint32_t flags;
  uint32_t reserved = 0;
};
constexpr uint32_t kFutex32 = 2;
constexpr long kFutexWaitv = 449;
constexpr size_t kMostBells = 128;  // FUTEX_WAITV_MAX

timespec soon(long longestNs) noexcept {
  timespec when{};
  ::clock_gettime(CLOCK_MONOTONIC, &when);
  when.tv_nsec += longestNs;
  if (when.tv_nsec >= 1'000'000'000) when.tv_nsec -= 1'000'000'000, ++when.tv_sec;
  return when;
}

}  // namespace

bool Sleeper::sleepBlind() const noexcept {
  const timespec limit{0, longestNs_};
  ::nanosleep(&limit, nullptr);
  return false;
}

// What a wait on futexes came to. A kernel that lacks it has not waited yet.
bool Sleeper::woken(long result) const noexcept {
  if (result >= 0 || errno == EAGAIN || errno == EINTR) return true;
  return errno == ETIMEDOUT ? false : sleepBlind();
}

void Sleeper::hear(link::Doorbell& bell, link::Ear* ear, bool patient) noexcept {
  if (std::ranges::find(bells_, &bell, &Heard::bell) != bells_.end()) return;
  try {
    bells_.push_back({&bell, ear, 0, patient});
  } catch (const std::bad_alloc&) {
    return;
  }
  // The look at the lanes that follows should not move before this: a read-modify-write of the strictest order is a
  // full barrier where it matters. It would pair with a fence in link::ring(), which has none (it is on the short
  // path), so a ring may still be missed; the sleep is bounded for that. As a release the first pairs with wake(): the
  // ear's name is there.
  if (ear != nullptr) bell.polling.fetch_add(1, std::memory_order_seq_cst);
  if (patient) bell.patient.fetch_add(1, std::memory_order_relaxed);
  bells_.back().rings = bell.rings.load(std::memory_order_acquire);
  bell.sleeping.fetch_add(1, std::memory_order_seq_cst);
}

void Sleeper::rise() noexcept {
  for (const Heard& heard : bells_) {
    heard.bell->sleeping.fetch_sub(1, std::memory_order_relaxed);
    if (heard.ear != nullptr) heard.bell->polling.fetch_sub(1, std::memory_order_relaxed);
    if (heard.patient) heard.bell->patient.fetch_sub(1, std::memory_order_relaxed);
  }
  bells_.clear();
  drivers_.clear();
  sockets_.clear();
}

void Sleeper::watch(link::Driver& driver) noexcept {
  try {
    drivers_.push_back(&driver);
  } catch (const std::bad_alloc&) {
  }
}

bool Sleeper::sleep() noexcept {
  std::ranges::sort(drivers_);
  drivers_.erase(std::unique(drivers_.begin(), drivers_.end()), drivers_.end());
  return drivers_.empty() ? sleepOnBells() : sleepOnSockets();
}

bool Sleeper::sleepOnBells() const noexcept {
  if (bells_.empty()) return sleepBlind();
  if (bells_.size() == 1) {
    const timespec limit{0, longestNs_};
    return woken(::syscall(SYS_futex, &bells_[0].bell->rings, FUTEX_WAIT, bells_[0].rings, &limit, nullptr, 0));
  }
  std::array<FutexWait, kMostBells> waits;
  const size_t count = std::min(bells_.size(), waits.size());
  for (size_t i = 0; i < count; ++i)
    waits[i] = {bells_[i].rings, reinterpret_cast<uintptr_t>(&bells_[i].bell->rings), kFutex32};
  const timespec until = soon(longestNs_);
  return woken(::syscall(kFutexWaitv, waits.data(), static_cast<unsigned>(count), 0, &until, CLOCK_MONOTONIC));
}

bool Sleeper::sleepOnSockets() noexcept {
  try {
    sockets_.reserve(drivers_.size() + bells_.size());
  } catch (const std::bad_alloc&) {
    return sleepBlind();
  }
  for (link::Driver* driver : drivers_) {
    const auto wanted = driver->interest();
    // A socket without wishes would still report its end, again and again.
    sockets_.push_back({wanted.events == 0 ? -1 : wanted.fd, wanted.events, 0});
  }
  for (const Heard& heard : bells_) sockets_.push_back({heard.ear == nullptr ? -1 : heard.ear->fd(), POLLIN, 0});
  // Refused when there are more than the process may open, for instance: then nothing tells of news.
  const timespec limit{0, longestNs_};
  if (::ppoll(sockets_.data(), sockets_.size(), &limit, nullptr) < 0) return sleepBlind();
  return serve();
}

bool Sleeper::serve() noexcept {
  bool news = false;
  for (size_t i = 0; i < sockets_.size(); ++i) {
    if (sockets_[i].revents == 0) continue;
    news = true;
    if (i < drivers_.size())
      drivers_[i]->drive();
    else
      bells_[i - drivers_.size()].ear->drain();
  }
  return news;
}

}  // namespace tutti::engine
