// How many blocks a device holds at once. A launch whose blocks do not all fit waits until others end, and so do the
// launches behind it: the first blocks of a kernel never start before the last one of the kernel before it.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "emulation/device/grid.h"

namespace tutti::emulation {

class Residency {
 public:
  explicit Residency(unsigned blocks) : limit_(blocks) {}

  void setLimit(unsigned blocks);
  // A launch calls begin(), then enter() for each of its blocks in turn, then end(); each block that ends, leave().
  void begin();
  void enter(const Failure& failure);  // waits for room, while the device works
  void end();
  void leave();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned limit_, inside_ = 0;
  uint64_t nextTicket_ = 0, serving_ = 0;
};

// Runs all blocks of the launch, and returns when they have ended. What goes wrong is in `failure`.
void runGrid(const Launch& launch, Residency& residency, Failure& failure);

}  // namespace tutti::emulation
