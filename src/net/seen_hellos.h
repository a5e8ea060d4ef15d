// The first messages of hellos that have lately opened at a listener. One that comes again was recorded, and is turned
// away before anything is computed for it. Of a fixed size: nothing is allocated for a caller.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/noise.h"

namespace tutti {

// On one thread.
class SeenHellos {
 public:
  // A rank is called by its children and by those that want streams, a root once by each rank. Of older ones a repeat
  // gets the answer that the first one got, which nobody but its caller can go on with.
  static constexpr size_t kKept = 4096;

  bool has(const noise::Key& fresh) const noexcept { return std::ranges::find(marks_, markOf(fresh)) != marks_.end(); }
  void add(const noise::Key& fresh) noexcept { marks_[next_++ % kKept] = markOf(fresh); }

 private:
  // Keys of honest callers are drawn at random: no two begin alike.
  static uint64_t markOf(const noise::Key& fresh) noexcept {
    uint64_t mark = 0;
    std::memcpy(&mark, fresh.data(), sizeof mark);
    return mark;
  }
  std::array<uint64_t, kKept> marks_{};
  size_t next_ = 0;
};

}  // namespace tutti
