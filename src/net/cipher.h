// Seals and opens the records of one direction of a connection (libsodium): AES-256-GCM where both ends' processors
// have it, XChaCha20-Poly1305 where not. Every record gets the next number as its nonce, and none travels with it: a
// record that was changed, repeated, dropped or moved does not open. The key is replaced by a hash of itself long
// before a cipher's limits (RFC 8446, 5.5), so that one that leaks later opens nothing of what came before.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tutti {

enum class CipherKind : uint8_t { kXChaCha20Poly1305, kAes256Gcm };
// Whether this processor has what AES-256-GCM needs (AES and carry-less multiplication).
bool hasAes256Gcm() noexcept;

// Overwrites what must not stay in memory.
void wipe(void* data, size_t bytes) noexcept;

using CipherKey = std::array<std::byte, 32>;

// The keys of one connection. Wiped when they go.
struct SessionKeys {
  CipherKind kind = CipherKind::kXChaCha20Poly1305;
  CipherKey send{}, receive{};

  SessionKeys() = default;
  SessionKeys(const SessionKeys&) = default;
  SessionKeys& operator=(const SessionKeys&) = default;
  ~SessionKeys() {
    wipe(send.data(), send.size());
    wipe(receive.data(), receive.size());
  }
};

// One end of one direction: either seals or opens, each record once, in order. Not thread-safe.
class Cipher {
 public:
  static constexpr size_t kTagBytes = 16;
  static constexpr uint64_t kBytesPerKey = uint64_t{1} << 36;

  // kAes256Gcm needs hasAes256Gcm(). Both ends must give the same `bytesPerKey`. Throws only std::bad_alloc.
  Cipher(CipherKind kind, const CipherKey& key, uint64_t bytesPerKey = kBytesPerKey);
  ~Cipher();
  Cipher(Cipher&&) noexcept;
  Cipher& operator=(Cipher&&) noexcept;

  // `sealed` gets `bytes` bytes and may be `clear` itself; `tag` gets kTagBytes.
  // False, with nothing written, when the key has gone: to another Cipher, or with it. Nothing may be sent then.
  [[nodiscard]] bool seal(std::byte* sealed, std::byte* tag, const std::byte* clear, size_t bytes) noexcept;
  // False when the record is not the next one that was sealed; then, and for good, nothing opens any more, and `clear`
  // holds nothing of use. `clear` may be `sealed` itself.
  [[nodiscard]] bool open(std::byte* clear, const std::byte* sealed, size_t bytes, const std::byte* tag) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti
