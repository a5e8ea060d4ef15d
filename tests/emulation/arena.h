// Memory from which every buffer of a test's operations comes while it lives, so that one registration covers them all.
#pragma once
#include <memory_resource>

#include "support/api_ranks.h"

namespace tutti::test {

class Arena {
 public:
  // `memory` stays the caller's, and outlives this.
  Arena(void* memory, size_t bytes)
      : memory_(memory),
        bytes_(bytes),
        resource_(memory, bytes, std::pmr::null_memory_resource()),
        before_(std::pmr::set_default_resource(&resource_)) {}
  ~Arena() { std::pmr::set_default_resource(before_); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns the registration's handle.
  void* registerAt(tuttiComm_t comm) {
    void* handle = nullptr;
    CHECK_TUTTI(tuttiCommRegister(comm, memory_, bytes_, &handle, 0));
    return handle;
  }
  void reset() { resource_.release(); }  // once nobody has a buffer

 private:
  void* memory_;
  size_t bytes_;
  std::pmr::monotonic_buffer_resource resource_;
  std::pmr::memory_resource* before_;
};

// Slots of the communicator that were read or written in place.
inline uint64_t directSlots(tuttiComm_t comm) {
  tuttiCommStats_t stats = {};
  stats.size = sizeof stats;
  CHECK_TUTTI(tuttiCommGetStats(comm, &stats));
  return stats.directSlots;
}

}  // namespace tutti::test
