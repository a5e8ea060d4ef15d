#include <atomic>

#include "emulation/device/intrinsics.h"

// ThreadSanitizer does not know fences. It does know read-modify-writes of one variable: of two fences, the later one
// sees the earlier one, which orders at least as much as the fences do.
void __threadfence_system() {
#ifdef TUTTI_EMULATION_THREAD
  static std::atomic<unsigned> fences{0};
  fences.fetch_add(1, std::memory_order_acq_rel);  // with itself
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);  // with the other fences
#endif
}
