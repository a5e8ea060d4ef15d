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

void Groups::add(const c10::intrusive_ptr<Backend>& backend) {
  const std::lock_guard lock(mutex_);
  members_.push_back(
      {backend.get(), c10::weak_intrusive_ptr<c10d::Backend>(c10::intrusive_ptr<c10d::Backend>(backend))});
}

void Groups::remove(const Backend& backend) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(members_, [&](const Member& member) { return member.backend == &backend; });
}

std::vector<GroupNumbers> Groups::read() const {
  const std::lock_guard lock(mutex_);
  std::vector<GroupNumbers> all;
  for (const Member& member : members_) all.push_back(member.backend->tell());
  return all;
}

// One that is being destroyed ends by itself.
void Groups::endAll() {
  std::vector<c10::intrusive_ptr<c10d::Backend>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const Member& member : members_)
      if (auto backend = member.kept.lock()) all.push_back(std::move(backend));
  }
  for (const auto& backend : all) static_cast<Backend&>(*backend).shutdown();
}

}  // namespace tutti_torch
