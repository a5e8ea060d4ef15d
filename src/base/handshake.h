// The authenticated hello with which every connection begins, over a non-blocking stream socket.
//
//   client -> server   magic and version, flags, 32 random bytes
//   server -> client   magic and version, flags, 32 random bytes
//   client -> server   MAC(secret; "client", context, both flags, both nonces)
//   server -> client   MAC(secret; "server", context, both flags, both nonces)
//
// The caller proves first, so that a stranger gets nothing from us that it could use to guess a weak secret at home.
// Fresh nonces make a recorded hello worthless, the role labels a reflected one; the context names the job and the
// listener that the caller means, so that a member of the job which happens to sit at a stale or local address is not
// mistaken for the one that was called. The flags say whether a side wants what follows sealed, and with what it can;
// since the MACs cover them, nobody on the way can talk the two out of it. Sides that differ part, each with a text
// that says which one wants it. Both derive a key per direction and use. All messages have a fixed size: nothing is
// allocated for a peer that has not proved itself.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/cipher.h"

namespace tutti {

// Whether what follows the hello is to be sealed. kAsCalled: a server that leaves it to its caller.
enum class Encryption : uint8_t { kOff, kOn, kAsCalled };

struct HandshakeContext {
  std::array<std::byte, 16> secret{};
  uint64_t job = 0;
  uint64_t listener = 0;  // of the side that was called
  Encryption encryption = Encryption::kOff;
  bool aes = hasAes256Gcm();  // what this side says that it can
};

class Handshake {
 public:
  enum class Role : uint8_t { kClient, kServer };
  enum class Status : uint8_t { kWantsRead, kWantsWrite, kDone, kFailed };
  // What keys are for: two uses of one connection never share a key.
  enum class Use : uint8_t { kControl, kData };

  Handshake(Role role, const HandshakeContext& context) noexcept;
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // Goes on as far as the socket lets it. Reads not one byte beyond the hello. Never blocks.
  Status advance(int fd) noexcept;
  std::string error() const { return error_; }
  int messagesDone() const noexcept { return message_; }
  // After kFailed: the peer said nothing wrong, it left.
  bool hungUp() const noexcept { return hungUp_; }
  // After kFailed: a proof failed, since the two sides' secrets or contexts differ. The caller's end is not told so; it
  // sees the other hang up on its proof.
  bool unproven() const noexcept { return unproven_; }
  // After kDone.
  bool peerEncrypts() const noexcept;
  SessionKeys keys(Use use = Use::kControl) const noexcept;

 private:
  static constexpr size_t kMagicBytes = 8, kNonceBytes = 32, kMacBytes = 32;
  static constexpr size_t kHelloBytes = kMagicBytes + 1 + kNonceBytes;
  static constexpr int kMessages = 4;
  using Mac = std::array<std::byte, kMacBytes>;

  bool sends() const noexcept { return (message_ % 2 == 0) == (role_ == Role::kClient); }
  size_t messageBytes() const noexcept { return message_ < 2 ? kHelloBytes : kMacBytes; }
  void prepare() noexcept;
  bool accept() noexcept;
  bool acceptHello() noexcept;
  bool looksRight() noexcept;
  uint8_t ownFlags() const noexcept;
  uint8_t peerFlags() const noexcept { return role_ == Role::kClient ? serverFlags_ : clientFlags_; }
  Mac mac(const char* label) const noexcept;
  Status finish() noexcept;
  Status fail(const char* why) noexcept;
  const char* leftWhere(bool sending) noexcept;

  Role role_;
  HandshakeContext context_;
  int message_ = 0;  // of the four above
  size_t moved_ = 0;
  std::array<std::byte, kHelloBytes> buffer_{};
  std::array<std::byte, kNonceBytes> clientNonce_{}, serverNonce_{};
  uint8_t clientFlags_ = 0, serverFlags_ = 0;
  bool hungUp_ = false, unproven_ = false;
  const char* error_ = "";  // kept without memory
};

// Fills `data` with bytes that nobody can guess.
void fillRandom(void* data, size_t bytes) noexcept;
uint64_t randomNumber() noexcept;
// A hash of up to 64 bytes over `text`, keyed when `key` is not empty (BLAKE2b).
void hashInto(void* out, size_t outBytes, const void* data, size_t bytes, const void* key = nullptr,
              size_t keyBytes = 0) noexcept;

}  // namespace tutti
