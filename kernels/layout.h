// Where the segments of one call lie in memory, and which part of each one round covers. Plain data and arithmetic,
// the same for a host lane and a CUDA block.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tutti::kernels {

// A run of elements: where it starts in the input and in the output buffer, and how long it is.
struct Piece {
  size_t input = 0, output = 0, count = 0;
};

struct Layout {
  // Length of segment s: uniform, or from a table when the counts differ by rank. A step that reads `input` goes by the
  // input's lengths, every other one by the output's (they differ in an all-to-all-v only).
  size_t total = 0;   // elements of the message (kSplit)
  size_t stride = 0;  // elements from one segment to the next (kSplit), or of each segment (kPerRank)
  bool perRank = false;
  bool inputIsSegment = false, outputIsSegment = false;  // the buffer holds the own segment only
  uint32_t segments = 1;
  const size_t* inputCounts = nullptr;  // tables of the v-variants, or null
  const size_t* outputCounts = nullptr;
  const size_t* inputOffsets = nullptr;
  const size_t* outputOffsets = nullptr;
  size_t chunk = 1;                    // elements of a segment that one slot carries
  uint32_t channel = 0, channels = 1;  // this lane's share of every segment
  // Where a step has nothing to move in the first round it goes from rank to rank all the same, in slots of no bytes,
  // so that a rank that has something finds out, and so do those whom it waits for. Of calls of nothing; and in streams
  // of all whose parts have counts of their own.
  bool speaks = false;

  constexpr size_t length(uint32_t segment, bool byInput) const noexcept {
    const size_t* counts = byInput ? inputCounts : outputCounts;
    if (counts) return counts[segment];
    if (perRank) return stride;
    const size_t begin = std::min(size_t{segment} * stride, total);
    return std::min(stride, total - begin);
  }
  constexpr size_t inputOffset(uint32_t segment) const noexcept {
    if (inputIsSegment) return 0;
    return inputOffsets ? inputOffsets[segment] : std::min(size_t{segment} * stride, perRank ? SIZE_MAX : total);
  }
  constexpr size_t outputOffset(uint32_t segment) const noexcept {
    if (outputIsSegment) return 0;
    return outputOffsets ? outputOffsets[segment] : std::min(size_t{segment} * stride, perRank ? SIZE_MAX : total);
  }
  // The elements of the caller's buffers that the call uses: from the begin to the end of the last segment. `own`: the
  // segment that a buffer of one segment holds.
  constexpr size_t inputExtent(uint32_t own) const noexcept {
    const bool byInput = inputCounts != nullptr;
    if (inputIsSegment) return length(own, byInput);
    size_t end = 0;
    for (uint32_t s = 0; s < segments; ++s) end = std::max(end, inputOffset(s) + length(s, byInput));
    return end;
  }
  constexpr size_t outputExtent(uint32_t own) const noexcept {
    if (outputIsSegment) return length(own, false);
    size_t end = 0;
    for (uint32_t s = 0; s < segments; ++s) end = std::max(end, outputOffset(s) + length(s, false));
    return end;
  }
  // First element, within a segment of `length`, of the share of channel c. Shares start at whole 16 elements.
  static constexpr size_t shareBegin(size_t length, uint32_t c, uint32_t of) noexcept {
    if (c == 0) return 0;
    if (c == of) return length;
    return length / of * c / 16 * 16;
  }
  constexpr size_t shareCount(uint32_t segment, bool byInput) const noexcept {
    const size_t whole = length(segment, byInput);
    return channels == 1 ? whole : shareBegin(whole, channel + 1, channels) - shareBegin(whole, channel, channels);
  }
  // What round r covers of a segment.
  constexpr Piece piece(uint32_t segment, size_t round, bool byInput) const noexcept {
    const size_t whole = length(segment, byInput);
    const size_t begin = shareBegin(whole, channel, channels) + round * chunk;
    const size_t end = shareBegin(whole, channel + 1, channels);
    if (begin >= end) return {};
    return {inputOffset(segment) + begin, outputOffset(segment) + begin, std::min(chunk, end - begin)};
  }
  // The elements of a segment's share from that round on: they lie side by side.
  constexpr size_t restFrom(uint32_t segment, size_t round, bool byInput) const noexcept {
    const size_t share = shareCount(segment, byInput), before = round * chunk;
    return share - std::min(share, before);
  }
  // Of segments that are cut from a message at most one is neither of full length nor empty. Since shares begin at
  // whole 16 elements, a channel's share of that one may be the longer all the same.
  constexpr uint32_t shorterSegment() const noexcept {
    if (channels == 1 || perRank || stride == 0) return 0;
    return static_cast<uint32_t>(std::min<size_t>(total / stride, segments - 1));
  }
  // The elements of the longest share.
  constexpr size_t longestShare() const noexcept {
    if (!inputCounts && !outputCounts) return std::max(shareCount(0, true), shareCount(shorterSegment(), true));
    size_t longest = 0;
    for (uint32_t s = 0; s < segments; ++s)
      longest = std::max(longest, std::max(shareCount(s, true), shareCount(s, false)));
    return longest;
  }
  // Rounds until every segment is through.
  constexpr size_t rounds() const noexcept { return roundsOf(longestShare()); }
  constexpr size_t roundsOf(size_t longest) const noexcept {
    return longest <= chunk ? longest != 0 || speaks : (longest + chunk - 1) / chunk;
  }
};

}  // namespace tutti::kernels
