#include "team/executor.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tutti::comm {

std::shared_ptr<Operation> Executor::newOperation() { return std::make_shared<Operation>(); }

void Executor::addBuffer(const void*, const Range&) {}
void Executor::endBuffer(const void*) {}
void Executor::endBuffers() noexcept {}
void Executor::end() noexcept {}
void Executor::note() {}

Explanation Executor::explain(const Call& call) const {
  const std::string choice = foresee(call);
  return {{choice, choice, "", 0}, {}, {}, {}, ""};
}

void Executor::waitUntilIdle() const noexcept {
  while (!idle()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void launchGroup(std::span<PendingCall> calls) {
  const auto launcherOf = [](const PendingCall& one) { return &one.executor->launcher(); };
  const auto orderOf = [&](const PendingCall& one) { return std::pair(launcherOf(one)->runs(), launcherOf(one)); };
  if (!std::ranges::is_sorted(calls, {}, orderOf)) std::ranges::stable_sort(calls, {}, orderOf);
  for (auto from = calls.begin(); from != calls.end();) {
    const GroupLauncher* const launcher = launcherOf(*from);
    const auto to =
        std::find_if(from, calls.end(), [&](const PendingCall& one) { return launcherOf(one) != launcher; });
    launcher->launch({from, to});
    from = to;
  }
}

}  // namespace tutti::comm
