// How many blocks of the collective kernel may be on a GPU at once, and to whom they are promised.
//
// Blocks of one operation wait for each other, so all of them must be there together: a block that is not scheduled
// because others fill the GPU is one that its peers wait for in vain. Within a process the GPU's room is shared out
// here; other processes are not seen.
#pragma once
#include <cstdint>
#include <mutex>

namespace tutti::cuda {

class Residency {
 public:
  Residency(int ordinal, uint32_t blocks) : ordinal_(ordinal), blocks_(blocks) {}
  uint32_t free() const noexcept;
  // Throws Error(kInvalidUsage) when fewer are left.
  void reserve(uint32_t blocks);
  void giveBack(uint32_t blocks) noexcept;

 private:
  int ordinal_;
  uint32_t blocks_;
  mutable std::mutex mutex_;  // guards what follows
  uint32_t promised_ = 0;
};

}  // namespace tutti::cuda
