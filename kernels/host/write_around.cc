#include "kernels/host/write_around.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/host/vectors.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tutti::kernels {

#if defined(__SSE2__)

void streamNarrow(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  auto* const destination = reinterpret_cast<__m128i*>(to);
  for (size_t i = 0; i < bytes / sizeof(__m128i); ++i) _mm_stream_si128(destination + i, _mm_loadu_si128(source + i));
}

void copyAround(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % kLine);
  const size_t lines = (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  streamLines(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

void settle() noexcept { _mm_sfence(); }

#else

void streamNarrow(std::byte* to, const std::byte* from, size_t bytes) noexcept { std::memcpy(to, from, bytes); }
void copyAround(std::byte* to, const std::byte* from, size_t bytes) noexcept { std::memcpy(to, from, bytes); }
void settle() noexcept {}

#endif

}  // namespace tutti::kernels
