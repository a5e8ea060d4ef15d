#include "groups.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "backend.h"

namespace tutti_torch {

// Never freed: groups may be left after static objects have gone. The parent's mutex may be held for ever in a child.
Groups& Groups::ofThisProcess() {
  static std::atomic<Groups*> groups{nullptr};
  static const int told = [] {
    groups = new Groups;
    return ::pthread_atfork(nullptr, nullptr, [] { groups = new Groups; });
  }();
  (void)told;
  return *groups;
}

void Groups::add(const Backend& backend) {
  const std::lock_guard lock(mutex_);
  backends_.push_back(&backend);
}

void Groups::remove(const Backend& backend) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(backends_, &backend);
}

std::vector<GroupNumbers> Groups::read() const {
  const std::lock_guard lock(mutex_);
  std::vector<GroupNumbers> all;
  for (const Backend* const backend : backends_) all.push_back(backend->tell());
  return all;
}

}  // namespace tutti_torch
