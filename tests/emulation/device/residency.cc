#include "emulation/device/residency.h"

#include <latch>

#include "emulation/device/block.h"
#include "emulation/device/workers.h"

namespace tutti::emulation {

void Residency::setLimit(unsigned blocks) {
  const std::lock_guard lock(mutex_);
  limit_ = blocks;
  changed_.notify_all();
}

void Residency::begin() {
  std::unique_lock lock(mutex_);
  const uint64_t ticket = nextTicket_++;
  changed_.wait(lock, [&] { return serving_ == ticket; });
}

void Residency::enter(const Failure& failure) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return inside_ < limit_ || failure.happened(); });
  ++inside_;
}

void Residency::end() {
  const std::lock_guard lock(mutex_);
  ++serving_;
  changed_.notify_all();
}

void Residency::leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
  changed_.notify_all();
}

void runGrid(const Launch& launch, Residency& residency, Failure& failure) {
  const Grid grid{launch, failure, nextLaunchSeed()};
  const dim3 size = launch.grid;
  std::latch ended(static_cast<ptrdiff_t>(size.x) * size.y * size.z);
  residency.begin();
  for (unsigned z = 0; z < size.z; ++z)
    for (unsigned y = 0; y < size.y; ++y)
      for (unsigned x = 0; x < size.x; ++x) {
        residency.enter(failure);
        runOnWorker([&, index = uint3{x, y, z}] {
          Block(grid, index).run();
          residency.leave();
          ended.count_down();
        });
      }
  residency.end();
  ended.wait();
}

}  // namespace tutti::emulation
