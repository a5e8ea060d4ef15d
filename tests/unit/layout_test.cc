// Every element of every segment is in the piece of one channel in one round, whatever the lengths.
#include "kernels/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tutti::kernels {
namespace {

// As calls are cut: segments begin at whole lines of so many elements.
Layout splitOf(size_t total, uint32_t segments, size_t chunk, uint32_t channels, size_t line = 16) {
  Layout layout;
  layout.total = total;
  layout.segments = segments;
  layout.stride = ((total + segments - 1) / segments + line - 1) / line * line;
  layout.chunk = chunk;
  layout.channels = channels;
  return layout;
}

// How many elements of a segment the channels come to in their rounds: side by side, or the test fails.
size_t reached(Layout layout, uint32_t segment) {
  size_t end = 0;
  for (layout.channel = 0; layout.channel < layout.channels; ++layout.channel)
    for (size_t round = 0; round < layout.rounds(); ++round) {
      const Piece piece = layout.piece(segment, round, true);
      if (piece.count == 0) continue;
      EXPECT_EQ(piece.input, layout.inputOffset(segment) + end);
      end = piece.input - layout.inputOffset(segment) + piece.count;
    }
  return end;
}

void expectAllReached(const Layout& layout) {
  for (uint32_t s = 0; s < layout.segments; ++s)
    ASSERT_EQ(reached(layout, s), layout.length(s, true))
        << layout.total << " elements in " << layout.segments << " segments, segment " << s << ", " << layout.channels
        << " channels, chunks of " << layout.chunk;
}

constexpr uint32_t kChannels[] = {1, 2, 3, 4, 5, 7, 8, 16, 32};

TEST(LayoutOfACall, SmallMessagesAreReachedWhole) {
  for (size_t total = 0; total <= 1200; ++total)
    for (const uint32_t segments : {1u, 2u, 3u, 4u, 8u})
      for (const uint32_t channels : kChannels)
        for (const size_t line : {1, 8, 64}) expectAllReached(splitOf(total, segments, 64, channels, line));
}

// Just beside whole numbers of chunks, one share may take a round more than another.
TEST(LayoutOfACall, AreReachedWholeBesideWholeNumbersOfChunks) {
  for (const uint32_t segments : {2u, 3u, 4u, 8u})
    for (const uint32_t channels : kChannels)
      for (const size_t chunk : {size_t{128}, size_t{1024}, size_t{16384}})
        for (const size_t chunks : {1, 2, 3})
          for (int beside = -40; beside <= 40; ++beside)
            expectAllReached(
                splitOf(chunk * chunks * segments * channels + static_cast<size_t>(beside), segments, chunk, channels));
}

TEST(LayoutOfACall, IsReachedWholeWithLengthsByChance) {
  std::mt19937 random(11);
  for (int i = 0; i < 4000; ++i) {
    const auto segments = static_cast<uint32_t>(1 + random() % 9), channels = static_cast<uint32_t>(1 + random() % 32);
    expectAllReached(splitOf(random() % 200'000, segments, 16 * (1 + random() % 400), channels));
    std::vector<size_t> counts(segments), offsets(segments, 0);
    for (size_t& count : counts) count = random() % 3000;
    for (uint32_t s = 1; s < segments; ++s) offsets[s] = offsets[s - 1] + counts[s - 1];
    Layout parts = splitOf(0, segments, 16 * (1 + random() % 60), channels);
    parts.inputCounts = parts.outputCounts = counts.data();
    parts.inputOffsets = parts.outputOffsets = offsets.data();
    expectAllReached(parts);
  }
}

}  // namespace
}  // namespace tutti::kernels
