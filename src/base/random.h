// Bytes that nobody can guess, and hashes (libsodium).
#pragma once
#include <cstddef>
#include <cstdint>

namespace tutti {

// Fills `data` with bytes that nobody can guess.
void fillRandom(void* data, size_t bytes) noexcept;
uint64_t randomNumber() noexcept;
// A hash of up to 64 bytes over `text`, keyed when `key` is not empty (BLAKE2b).
void hashInto(void* out, size_t outBytes, const void* data, size_t bytes, const void* key = nullptr,
              size_t keyBytes = 0) noexcept;

}  // namespace tutti
