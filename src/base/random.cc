#include "base/random.h"

#include <sodium.h>

#include <array>
#include <cstring>

namespace tutti {
namespace {

// Fails only where the system has no source of random bytes, and then the calls below end the process.
[[maybe_unused]] const int kReady = sodium_init();

}  // namespace

void fillRandom(void* data, size_t bytes) noexcept { randombytes_buf(data, bytes); }

uint64_t randomNumber() noexcept {
  uint64_t number = 0;
  fillRandom(&number, sizeof number);
  return number;
}

void hashInto(void* out, size_t outBytes, const void* data, size_t bytes, const void* key, size_t keyBytes) noexcept {
  // 16 bytes is the shortest that BLAKE2b gives in this library; shorter results are its beginning.
  std::array<unsigned char, 64> whole{};
  crypto_generichash(whole.data(), outBytes < 16 ? 16 : outBytes, static_cast<const unsigned char*>(data), bytes,
                     static_cast<const unsigned char*>(key), keyBytes);
  std::memcpy(out, whole.data(), outBytes);
  sodium_memzero(whole.data(), whole.size());
}

}  // namespace tutti
