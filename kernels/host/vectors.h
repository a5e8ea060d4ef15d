// The kinds of vectors that the vector kernel is compiled for, and the choice among them. Highway compiles it; its own
// choice is in a library that measures the resolution of the clock whenever a process loads it, which takes longer than
// a rank takes to join.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/host/job.h"

namespace tutti::kernels {

struct Vectors {
  int64_t highway;  // Highway's number for them
  bool (*runHere)() noexcept;
  void (*fold)(const Job& job);
  // Whole cache lines, from anywhere to where such begin, by stores that go around the caches (write_around.h).
  void (*streamLines)(std::byte* to, const std::byte* from, size_t bytes);
};

// The widest first; the last run wherever this library does.
std::span<const Vectors> everyVectors() noexcept;
// For tests: foldVector() and streamLines() take these from now on, or, with none, the widest that this machine has.
// Any thread, while no other is folding.
void useVectors(const Vectors* vectors) noexcept;
void streamLines(std::byte* to, const std::byte* from, size_t bytes) noexcept;
// The same without any of these vectors.
void streamNarrow(std::byte* to, const std::byte* from, size_t bytes) noexcept;

}  // namespace tutti::kernels
