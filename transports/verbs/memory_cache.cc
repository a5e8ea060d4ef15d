#include "transports/verbs/memory_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::verbs {

MemoryCache::~MemoryCache() {
  while (!entries_.empty()) drop(entries_.begin());
}

MemoryCache::Held MemoryCache::hold(const tuttiTransportMemory& memory, size_t most) {
  const std::lock_guard lock(mutex_);
  Place entry = find(memory.number);
  if (entry != entries_.end() && entry->forgotten) return {};
  if (entry == entries_.end()) {
    Lack lack{};
    int error = 0;
    if (!add(memory, most, lack, error)) return {{}, tell(memory, most, lack, error)};
    entry = std::prev(entries_.end());
  }
  ++entry->users;
  entries_.splice(entries_.end(), entries_, entry);
  return {entry->made.key, {}};
}

// What the device refuses for want of something, others may have: a limit of locked memory counts them all.
bool MemoryCache::add(const tuttiTransportMemory& memory, size_t most, Lack& lack, int& error) {
  if (memory.bytes > most) return lack = Lack::kTooLong, false;
  if (refused_.contains(memory.number)) return lack = Lack::kRefused, false;
  if (bytesInUse() + memory.bytes > most) return lack = Lack::kInUse, false;
  while (bytes_ + memory.bytes > most) makeRoom();
  lack = Lack::kRefused;
  entries_.push_back({memory.number, memory.bytes, {}});
  Registrar::Made made;
  do {
    made = registrar_.add(memory.begin, memory.bytes);
    error = made.handle == nullptr ? errno : 0;
  } while (error == ENOMEM && makeRoom());
  if (made.handle == nullptr) {
    entries_.pop_back();
    refused_.insert(memory.number);
    return false;
  }
  entries_.back().made = made;
  bytes_ += memory.bytes;
  ++made_;
  return true;
}

size_t MemoryCache::bytesInUse() const noexcept {
  size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.users > 0 ? entry.bytes : 0;
  return bytes;
}

// False: all are in use.
bool MemoryCache::makeRoom() noexcept {
  const auto isIdle = [](const Entry& entry) { return entry.users == 0 && entry.made.handle != nullptr; };
  const auto oldest = std::ranges::find_if(entries_, isIdle);
  if (oldest == entries_.end()) return false;
  drop(oldest);
  return true;
}

void MemoryCache::drop(Place entry) noexcept {
  registrar_.remove(entry->made.handle);
  bytes_ -= entry->bytes;
  entries_.erase(entry);
  refused_.clear();
}

void MemoryCache::letGo(uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  const auto isIt = [number](const Entry& entry) { return entry.number == number; };
  const auto entry = std::ranges::find_if(entries_, isIt);
  if (entry != entries_.end() && --entry->users == 0 && entry->forgotten) drop(entry);
}

void MemoryCache::forget(uint64_t number) noexcept {
  const std::lock_guard lock(mutex_);
  refused_.erase(number);
  const Place entry = find(number);
  if (entry == entries_.end()) return;
  entry->forgotten = true;
  if (entry->users == 0) drop(entry);
}

bool MemoryCache::giveUpOne() noexcept {
  const std::lock_guard lock(mutex_);
  return makeRoom();
}

MemoryCache::Place MemoryCache::find(uint64_t number) noexcept {
  return std::ranges::find(entries_, number, &Entry::number);
}

// Once for each reason: it is the same for all links, and for each call of theirs.
std::string MemoryCache::tell(const tuttiTransportMemory& memory, size_t most, Lack lack, int error) {
  if (!told_.insert(lack).second) return {};
  const auto says = [&](const std::string& why) {
    return fmt::format("{} bytes of registered memory are copied into slots and not sent from where they are: {}",
                       memory.bytes, why);
  };
  switch (lack) {
    case Lack::kTooLong:
      return says(fmt::format("{} may register {} bytes (TUTTI_IB_MEMORY_MIB)", registrar_.name(), most));
    case Lack::kInUse:
      return says(fmt::format("{} may register {} bytes (TUTTI_IB_MEMORY_MIB), and others are in use",
                              registrar_.name(), most));
    case Lack::kRefused:
      break;
  }
  return says(fmt::format("{} does not register them: {}{}", registrar_.name(), std::strerror(error),
                          error == ENOMEM ? " (`ulimit -l` is the limit of locked memory)" : ""));
}

size_t MemoryCache::bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t MemoryCache::count() const noexcept {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

uint64_t MemoryCache::made() const noexcept {
  const std::lock_guard lock(mutex_);
  return made_;
}

}  // namespace tutti::verbs
