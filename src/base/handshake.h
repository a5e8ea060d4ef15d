// The authenticated hello with which every connection begins, over a non-blocking stream socket.
//
//   client -> server   magic and version, 32 random bytes
//   server -> client   magic and version, 32 random bytes
//   client -> server   MAC(secret; "client", context, both nonces)
//   server -> client   MAC(secret; "server", context, both nonces)
//
// The caller proves first, so that a stranger gets nothing from us that it could use to guess a weak secret at home.
// Fresh nonces make a recorded hello worthless, the role labels a reflected one; the context names the job and the
// listener that the caller means, so that a member of the job which happens to sit at a stale or local address is not
// mistaken for the one that was called. Both sides derive a key per direction, for sealing what follows.
// All messages have a fixed size: nothing is allocated for a peer that has not proved itself.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti {

struct HandshakeContext {
  std::array<std::byte, 16> secret{};
  uint64_t job = 0;
  uint64_t listener = 0;  // of the side that was called
};

struct SessionKeys {
  std::array<std::byte, 32> send{}, receive{};
};

class Handshake {
 public:
  enum class Role : uint8_t { kClient, kServer };
  enum class Status : uint8_t { kWantsRead, kWantsWrite, kDone, kFailed };

  Handshake(Role role, const HandshakeContext& context) noexcept;
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // Goes on as far as the socket lets it. Reads not one byte beyond the hello. Never blocks.
  Status advance(int fd) noexcept;
  const std::string& error() const noexcept { return error_; }
  const SessionKeys& keys() const noexcept { return keys_; }  // after kDone

 private:
  static constexpr size_t kMagicBytes = 8, kNonceBytes = 32, kMacBytes = 32;
  static constexpr size_t kHelloBytes = kMagicBytes + kNonceBytes;
  static constexpr int kMessages = 4;
  using Mac = std::array<std::byte, kMacBytes>;

  bool sends() const noexcept { return (message_ % 2 == 0) == (role_ == Role::kClient); }
  size_t messageBytes() const noexcept { return message_ < 2 ? kHelloBytes : kMacBytes; }
  void prepare() noexcept;
  bool accept() noexcept;
  bool acceptHello() noexcept;
  Mac mac(const char* label) const noexcept;
  void deriveKeys() noexcept;
  Status fail(const char* why) noexcept;

  Role role_;
  HandshakeContext context_;
  int message_ = 0;  // of the four above
  size_t moved_ = 0;
  std::array<std::byte, kHelloBytes> buffer_{};
  std::array<std::byte, kNonceBytes> clientNonce_{}, serverNonce_{};
  SessionKeys keys_;
  std::string error_;
};

// Fills `data` with bytes that nobody can guess.
void fillRandom(void* data, size_t bytes) noexcept;
uint64_t randomNumber() noexcept;
// A hash of up to 64 bytes over `text`, keyed when `key` is not empty (BLAKE2b).
void hashInto(void* out, size_t outBytes, const void* data, size_t bytes, const void* key = nullptr,
              size_t keyBytes = 0) noexcept;

}  // namespace tutti
