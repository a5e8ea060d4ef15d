// Copies and sums as good as a compiler can make them for this processor: with ordinary stores, and with stores that go
// around the caches. For the limits, which are built with -march=native.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace tutti::compare {

using Line = float __attribute__((vector_size(64)));

inline Line load(const float* from) {
  Line line;
  std::memcpy(&line, from, sizeof line);
  return line;
}

// `kAround`: around the caches, where the processor can do so and the place is that of a whole cache line.
template <bool kAround>
void store(float* to, const Line& line) {
#if defined(__AVX512F__)
  if (kAround) return _mm512_stream_ps(to, reinterpret_cast<const __m512&>(line));
#elif defined(__SSE2__)
  const auto* parts = reinterpret_cast<const __m128*>(&line);
  if (kAround) {
    for (int i = 0; i < 4; ++i) _mm_stream_ps(to + 4 * i, parts[i]);
    return;
  }
#endif
  std::memcpy(to, &line, sizeof line);
}

inline constexpr size_t kLineFloats = sizeof(Line) / sizeof(float);

inline bool onLines(const float* at) { return reinterpret_cast<uintptr_t>(at) % sizeof(Line) == 0; }

inline void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

template <bool kAround>
void copy(float* to, const float* from, size_t count) {
  if (!kAround || !onLines(to)) {
    std::memcpy(to, from, count * sizeof *to);
    return;
  }
  size_t i = 0;
  for (; i + kLineFloats <= count; i += kLineFloats) store<true>(to + i, load(from + i));
  std::memcpy(to + i, from + i, (count - i) * sizeof *to);
  fence();
}

// to[k][i] = the sum of all from[j][i], for i from `first` to `last`.
template <bool kAround>
void sum(float* const* to, int targets, const float* const* from, int sources, size_t first, size_t last) {
  const bool around = kAround && onLines(to[0] + first);
  size_t i = first;
  for (; i + kLineFloats <= last; i += kLineFloats) {
    Line total = load(from[0] + i);
    for (int j = 1; j < sources; ++j) total += load(from[j] + i);
    for (int k = 0; k < targets; ++k) around ? store<true>(to[k] + i, total) : store<false>(to[k] + i, total);
  }
  for (; i < last; ++i) {
    float total = from[0][i];
    for (int j = 1; j < sources; ++j) total += from[j][i];
    for (int k = 0; k < targets; ++k) to[k][i] = total;
  }
  if (around) fence();
}

}  // namespace tutti::compare
