// The kinds of vectors that the vector kernel is compiled for, and the choice among them. Highway compiles it; its own
// choice is in a library that measures the resolution of the clock whenever a process loads it, which takes longer than
// a rank takes to join.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/host/job.h"

namespace tutti::kernels {

struct Vectors {
  int64_t highway;  // Highway's number for them
  bool (*runHere)() noexcept;
  void (*fold)(const Job& job);
};

// The widest first; the last run wherever this library does.
std::span<const Vectors> everyVectors() noexcept;
// For tests: foldVector() takes these from now on, or, with none, the widest that this machine has. Any thread, while
// no other is folding.
void useVectors(const Vectors* vectors) noexcept;

}  // namespace tutti::kernels
