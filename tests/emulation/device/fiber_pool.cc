#include <mutex>
#include <utility>

#include "emulation/device/fiber.h"

namespace tutti::emulation {
namespace {

struct Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Fiber>> idle;
};

Pool& pool() {
  static auto* const pool = new Pool;  // outlives every thread of the program
  return *pool;
}

}  // namespace

std::vector<std::unique_ptr<Fiber>> takeFibers(size_t count) {
  std::vector<std::unique_ptr<Fiber>> fibers;
  fibers.reserve(count);
  {
    const std::lock_guard lock(pool().mutex);
    for (auto& idle = pool().idle; fibers.size() < count && !idle.empty(); idle.pop_back())
      fibers.push_back(std::move(idle.back()));
  }
  while (fibers.size() < count) fibers.push_back(std::make_unique<Fiber>());
  return fibers;
}

void giveFibers(std::vector<std::unique_ptr<Fiber>> fibers) {
  const std::lock_guard lock(pool().mutex);
  for (auto& fiber : fibers) pool().idle.push_back(std::move(fiber));
}

}  // namespace tutti::emulation
