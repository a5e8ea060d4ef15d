#include "emulation/device/grid.h"

#include <cstdio>

namespace tutti::emulation {
namespace {

std::atomic<uint64_t> baseSeed{1}, launches{0};

}  // namespace

void Failure::report(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (happened_.load(std::memory_order_relaxed)) return;
  text_ = text;
  std::fprintf(stderr, "emulation: %s\n", text.c_str());
  happened_.store(true, std::memory_order_release);  // with happened()
}

std::string Failure::text() const {
  const std::lock_guard lock(mutex_);
  return text_;
}

void Failure::clear() {
  const std::lock_guard lock(mutex_);
  text_.clear();
  happened_.store(false, std::memory_order_release);  // with happened()
}

// Relaxed: numbers alone, nothing is handed over with them.
void setSeed(uint64_t seed) {
  baseSeed.store(seed, std::memory_order_relaxed);
  launches.store(0, std::memory_order_relaxed);
}
uint64_t seed() noexcept { return baseSeed.load(std::memory_order_relaxed); }
uint64_t nextLaunchSeed() noexcept {
  return seed() * 0x9e3779b97f4a7c15 + launches.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tutti::emulation
