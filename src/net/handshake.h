// The authenticated hello with which every connection begins, over a non-blocking stream socket: a handshake of the
// Noise protocol (net/noise.h) among those who know the secret, Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b.
//
//   client -> server   magic and version, a fresh public key, sealed: flags
//   server -> client   the same of its own
//   client -> server   sealed: nothing
//
// Where both ends have keys of their own (`named`) it is Noise_IKpsk1_25519_ChaChaPoly_BLAKE2b: the caller knows the
// key of the one that it means, and tells its own, which the server looks up (peerKey). So none speaks in another's
// name.
//
// The caller proves the secret first, with its first message: a stranger gets no answer at all. The keys are fresh on
// both sides, so that a recorded hello is worthless - a listener that remembers it hangs up, another one's answer is of
// no use to it, and the third message, which comes with the first frame, is not its to make - and so that who records
// all and learns the secret later reads nothing. The prologue names the version, the job and the listener that the
// caller means, so that a member of the job which happens to sit at a stale or local address is not mistaken for the
// one that was called. The flags say whether a side wants what follows sealed, and with what it can; nobody on the way
// can change them. Sides that differ part, each with a text that says which one wants it. Both derive a key per
// direction and use. All messages have a fixed size: nothing is allocated for a peer that has not proved itself.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/cipher.h"
#include "net/noise.h"
#include "net/seen_hellos.h"

namespace tutti {

// Whether what follows the hello is to be sealed. kAsCalled: a server that leaves it to its caller.
enum class Encryption : uint8_t { kOff, kOn, kAsCalled };

// The secret is wiped when it goes.
struct HandshakeContext {
  std::array<std::byte, 16> secret{};
  uint64_t job = 0;
  uint64_t listener = 0;  // of the side that was called
  Encryption encryption = Encryption::kOff;
  bool aes = hasAes256Gcm();  // what this side says that it can
  // Both ends are on this host, over a Unix socket, where nobody can listen: the fresh keys are random bytes that
  // nobody computes with, which spares both sides what is dear in a hello.
  bool local = false;
  // Over a network, only the one who has the key `peer` can answer, and the caller proves that it has `own`.
  bool named = false;
  noise::KeyPair own{};
  noise::Key peer{};  // the caller knows it before the hello
  // A server's: what has opened there before, which outlives the hello. Null: a repeat is answered.
  SeenHellos* seen = nullptr;

  ~HandshakeContext() { wipe(secret.data(), secret.size()); }
};

class Handshake {
 public:
  enum class Role : uint8_t { kClient, kServer };
  enum class Status : uint8_t { kWantsRead, kWantsWrite, kDone, kFailed };
  // What keys are for: two uses of one connection never share a key. kSecret: a secret that is handed over.
  enum class Use : uint8_t { kControl, kData, kSecret };

  // Keeps nothing of the context's secrets beyond the hello.
  Handshake(Role role, const HandshakeContext& context) noexcept;
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
  // After kDone. The key of its own that the peer has shown; none where hellos are not `named`, or are local.
  const noise::Key& peerKey() const noexcept { return session_.peerKey(); }
  bool peerEncrypts() const noexcept;
  SessionKeys keys(Use use = Use::kControl) const noexcept;
  // Nobody will ask for keys any more, and who got hold of this memory would learn none. What somebody asked for all
  // the same would be keys that no other side has.
  void forgetKeys() noexcept;

 private:
  static constexpr size_t kMagicBytes = 8, kFlagsBytes = 1;
  // The longest message, which tells two keys.
  static constexpr size_t kMostBytes = kMagicBytes + 2 * noise::kKeyBytes + kFlagsBytes + 2 * noise::kTagBytes;
  static constexpr int kMessages = 3;

  bool sends() const noexcept { return (message_ % 2 == 0) == (role_ == Role::kClient); }
  size_t messageBytes() const noexcept;
  bool prepare() noexcept;
  bool accept() noexcept;
  bool looksRight() noexcept;
  noise::Key freshKey() const noexcept;
  bool repeats() const noexcept;
  uint8_t ownFlags() const noexcept;
  uint8_t peerFlags() const noexcept { return role_ == Role::kClient ? serverFlags_ : clientFlags_; }
  bool differ() const noexcept;
  Status finish() noexcept;
  Status fail(const char* why) noexcept;
  const char* leftWhere(bool sending) noexcept;

  Role role_;
  Encryption encryption_;
  bool aes_;
  SeenHellos* seen_;
  noise::Session session_;
  int message_ = 0;               // of the three above
  size_t bytes_ = 0, moved_ = 0;  // of that message
  std::array<std::byte, kMostBytes> buffer_{};
  uint8_t clientFlags_ = 0, serverFlags_ = 0;
  bool begun_ = false, hungUp_ = false, unproven_ = false;
  noise::Split split_;
  const char* error_ = "";  // kept without memory
};

}  // namespace tutti
