#include "perf/check.h"

#include <algorithm>
#include <cstring>

namespace tutti::perf {
namespace {

constexpr int kPoison = 0xA5;
constexpr size_t kWindow = 8192;  // elements: small enough for the nearest caches

void invert(std::byte* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = ~bytes[i];
}

// Renders elements [begin, begin + count) of the image.
void render(const Image& image, size_t begin, size_t count, std::byte* to) {
  std::memset(to, kPoison, count * image.elementSize);
  for (const Layer& layer : image.layers) {
    const size_t low = std::max(begin, layer.at);
    const size_t high = std::min(begin + count, layer.at + layer.count);
    if (low >= high) continue;
    std::byte* place = to + (low - begin) * image.elementSize;
    layer.sequence.write(layer.from + low - layer.at, high - low, place);
    if (layer.inverted) invert(place, (high - low) * image.elementSize);
  }
}

size_t differing(const std::byte* a, const std::byte* b, size_t count, size_t size) {
  if (std::memcmp(a, b, count * size) == 0) return 0;
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += std::memcmp(a + i * size, b + i * size, size) != 0;
  return wrong;
}

template <class Visit>
void forEachWindow(const Image& image, const Visit& visit) {
  for (size_t begin = 0; begin < image.elements; begin += kWindow) {
    visit(begin, std::min(kWindow, image.elements - begin));
  }
}

}  // namespace

void paint(const Image& image, std::byte* buffer) {
  forEachWindow(image,
                [&](size_t begin, size_t count) { render(image, begin, count, buffer + begin * image.elementSize); });
}

size_t countWrong(const Image& image, const std::byte* buffer) {
  std::vector<std::byte> right(std::min(kWindow, image.elements) * image.elementSize);
  size_t wrong = 0;
  forEachWindow(image, [&](size_t begin, size_t count) {
    render(image, begin, count, right.data());
    wrong += differing(right.data(), buffer + begin * image.elementSize, count, image.elementSize);
  });
  return wrong;
}

}  // namespace tutti::perf
