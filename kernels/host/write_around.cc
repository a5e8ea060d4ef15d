#include "kernels/host/write_around.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tutti::kernels {

#if defined(__SSE2__)

namespace {

constexpr size_t kLine = 64;

// Four stores fill the buffer that collects a line; it leaves when it is full.
void copyLine(std::byte* to, const std::byte* from) noexcept {
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  auto* const destination = reinterpret_cast<__m128i*>(to);
  for (size_t i = 0; i < kLine / sizeof(__m128i); ++i) _mm_stream_si128(destination + i, _mm_loadu_si128(source + i));
}

}  // namespace

void copyAround(std::byte* to, const std::byte* from, size_t bytes) noexcept {
  const size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from, head);
  size_t done = head;
  for (; bytes - done >= kLine; done += kLine) copyLine(to + done, from + done);
  std::memcpy(to + done, from + done, bytes - done);
}

void settle() noexcept { _mm_sfence(); }

#else

void copyAround(std::byte* to, const std::byte* from, size_t bytes) noexcept { std::memcpy(to, from, bytes); }
void settle() noexcept {}

#endif

}  // namespace tutti::kernels
