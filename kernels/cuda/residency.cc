#include "kernels/cuda/residency.h"

#include <algorithm>

#include "base/error.h"

namespace tutti::cuda {

uint32_t Residency::free() const noexcept {
  const std::lock_guard lock(mutex_);
  return blocks_ - promised_;
}

void Residency::reserve(uint32_t blocks) {
  const std::lock_guard lock(mutex_);
  if (blocks > blocks_ - promised_)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("GPU {} holds {} blocks of the collective kernel at once; other communicators of this "
                            "process have {} of them, so {} more could wait for each other for ever: use fewer "
                            "channels, or destroy a communicator first",
                            ordinal_, blocks_, promised_, blocks));
  promised_ += blocks;
}

void Residency::giveBack(uint32_t blocks) noexcept {
  const std::lock_guard lock(mutex_);
  promised_ -= std::min(blocks, promised_);
}

}  // namespace tutti::cuda
