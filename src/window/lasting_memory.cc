#include "window/lasting_memory.h"

#include <algorithm>

#include "process/fork.h"
#include "process/process_object.h"

namespace tutti::window {

LastingMemory& LastingMemory::ofProcess() { return ofThisProcess<LastingMemory>(); }

uint64_t LastingMemory::add(const void* begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  all_.push_back({static_cast<const std::byte*>(begin), bytes, last_ + 1});
  return ++last_;
}

// Who is told may take its time, and no call waits for that.
void LastingMemory::remove(uint64_t number) noexcept {
  Lasting ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(all_, number, &Lasting::number);
    if (found == all_.end()) return;
    ended = *found;
    all_.erase(found);
  }
  tellAll(ended);
}

bool LastingMemory::tellAgain(const Lasting& memory) const noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(all_, memory.number, &Lasting::number) != all_.end()) return false;
  }
  tellAll(memory);
  return true;
}

// There are ever more of those, in their order.
void LastingMemory::tellAll(const Lasting& ended) const noexcept {
  for (size_t i = 0;; ++i) {
    std::unique_lock lock(mutex_);
    if (i == told_.size()) return;
    const auto [who, forget] = told_[i];
    lock.unlock();
    forget(who, ended);
  }
}

std::optional<Lasting> LastingMemory::find(const std::byte* begin, size_t bytes) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto holds = [&](const Lasting& one) {
    if (begin < one.begin) return false;
    const auto before = static_cast<size_t>(begin - one.begin);
    return before <= one.bytes && bytes <= one.bytes - before;
  };
  const auto found = std::ranges::find_if(all_, holds);
  if (found == all_.end()) return std::nullopt;
  return *found;
}

void LastingMemory::tell(const void* who, Forget forget) {
  const std::lock_guard lock(mutex_);
  const auto isIt = [who](const auto& one) { return one.first == who; };
  if (std::ranges::none_of(told_, isIt)) told_.emplace_back(who, forget);
}

Lasts::Lasts(const void* begin, size_t bytes)
    : generation_(fork::generation()), number_(LastingMemory::ofProcess().add(begin, bytes)) {}

Lasts::~Lasts() {
  if (number_ != 0 && generation_ == fork::generation()) LastingMemory::ofProcess().remove(number_);
}

}  // namespace tutti::window
