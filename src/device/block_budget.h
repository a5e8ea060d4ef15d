// Co-residency: blocks that wait for each other must all be on the GPU, whatever else runs there.
#pragma once
#include <cstdint>

namespace tutti::device {

// Any thread.
class BlockBudget {
 public:
  virtual ~BlockBudget() = default;
  // Blocks of the collective kernel that can still be promised to communicators of this process.
  virtual uint32_t freeBlocks() const noexcept = 0;
  // Promises that many to the caller, until it gives them back. Throws Error(kInvalidUsage) when they are not there.
  virtual void reserve(uint32_t blocks) = 0;
  virtual void giveBack(uint32_t blocks) noexcept = 0;
};

}  // namespace tutti::device
