// What a buffer must hold, byte for byte, before and after a call.
#pragma once
#include <cstddef>
#include <vector>

#include "perf/inputs.h"

namespace tutti::perf {

// A stretch of a buffer, in elements, that follows a sequence from its element `from` on.
struct Layer {
  size_t at, count;
  Sequence sequence;
  size_t from;
  bool inverted = false;  // every bit flipped: differs from the right result in every element
};

// A buffer's contents: later layers hide earlier ones, and what none covers is poison.
struct Image {
  size_t elements = 0, elementSize = 0;
  std::vector<Layer> layers;

  size_t bytes() const { return elements * elementSize; }
};

// Fills the buffer with the image.
void paint(const Image& image, std::byte* buffer);
// The number of elements that differ from the image.
size_t countWrong(const Image& image, const std::byte* buffer);

}  // namespace tutti::perf
