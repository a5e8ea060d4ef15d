#include "base/handshake.h"

#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

// The last byte is the version of the hello.
constexpr std::array<char, 8> kMagic = {'t', 'u', 't', 't', 'i', 'H', 'i', 3};

constexpr uint8_t kWantsEncryption = 1, kHasAes = 2;

// Fails only where the system has no source of random bytes, and then the calls below end the process.
[[maybe_unused]] const int ready = sodium_init();

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
}

Handshake::Handshake(Role role, const HandshakeContext& context) noexcept : role_(role), context_(context) {
  fillRandom((role == Role::kClient ? clientNonce_ : serverNonce_).data(), kNonceBytes);
  if (sends()) prepare();
}

Handshake::~Handshake() { wipe(&context_, sizeof context_); }

Handshake::Status Handshake::fail(const char* why) noexcept {
  error_ = why;
  return Status::kFailed;
}

void Handshake::prepare() noexcept {
  if (message_ < 2) {
    uint8_t& flags = message_ == 0 ? clientFlags_ : serverFlags_;
    flags = ownFlags();
    std::memcpy(buffer_.data(), kMagic.data(), kMagicBytes);
    buffer_[kMagicBytes] = std::byte{flags};
    std::memcpy(buffer_.data() + kMagicBytes + 1, (message_ == 0 ? clientNonce_ : serverNonce_).data(), kNonceBytes);
  } else {
    const Mac proof = mac(message_ == 2 ? "client" : "server");
    std::memcpy(buffer_.data(), proof.data(), kMacBytes);
  }
}

// A hello that begins wrongly is refused with the first wrong byte, whatever its length.
bool Handshake::looksRight() noexcept {
  if (message_ >= 2) return true;
  if (std::memcmp(buffer_.data(), kMagic.data(), std::min(moved_, kMagicBytes - 1)) != 0)
    error_ = "does not speak tutti's protocol";
  else if (moved_ >= kMagicBytes && static_cast<char>(buffer_[kMagicBytes - 1]) != kMagic.back())
    error_ = "speaks another version of tutti's protocol";
  return *error_ == '\0';
}

bool Handshake::acceptHello() noexcept {
  (message_ == 0 ? clientFlags_ : serverFlags_) = static_cast<uint8_t>(buffer_[kMagicBytes]);
  std::memcpy((message_ == 0 ? clientNonce_ : serverNonce_).data(), buffer_.data() + kMagicBytes + 1, kNonceBytes);
  return true;
}

// A server that follows its caller has heard it when it answers.
uint8_t Handshake::ownFlags() const noexcept {
  const bool follows = context_.encryption == Encryption::kAsCalled;
  const bool wants = follows ? peerEncrypts() : context_.encryption == Encryption::kOn;
  return static_cast<uint8_t>((wants ? kWantsEncryption : 0) | (context_.aes ? kHasAes : 0));
}

bool Handshake::peerEncrypts() const noexcept { return (peerFlags() & kWantsEncryption) != 0; }

bool Handshake::accept() noexcept {
  if (message_ < 2) return acceptHello();
  const Mac expected = mac(message_ == 2 ? "client" : "server");
  if (sodium_memcmp(expected.data(), buffer_.data(), kMacBytes) == 0) return true;
  unproven_ = true;
  error_ = "does not know the secret of this job";
  return false;
}

Handshake::Mac Handshake::mac(const char* label) const noexcept {
  Mac out{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(context_.secret.data()),
                          context_.secret.size(), out.size());
  const auto add = [&](const void* data, size_t bytes) {
    crypto_generichash_update(&state, static_cast<const unsigned char*>(data), bytes);
  };
  std::array<char, 16> padded{};
  std::strncpy(padded.data(), label, padded.size() - 1);
  add(padded.data(), padded.size());
  add(kMagic.data(), kMagic.size());
  add(&context_.job, sizeof context_.job);
  add(&context_.listener, sizeof context_.listener);
  add(&clientFlags_, sizeof clientFlags_);
  add(&serverFlags_, sizeof serverFlags_);
  add(clientNonce_.data(), clientNonce_.size());
  add(serverNonce_.data(), serverNonce_.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out.data()), out.size());
  return out;
}

SessionKeys Handshake::keys(Use use) const noexcept {
  const bool control = use == Use::kControl;
  Mac up = mac(control ? "key to server" : "data to server"), down = mac(control ? "key to client" : "data to client");
  SessionKeys keys;
  keys.kind = (clientFlags_ & serverFlags_ & kHasAes) != 0 ? CipherKind::kAes256Gcm : CipherKind::kXChaCha20Poly1305;
  keys.send = role_ == Role::kClient ? up : down;
  keys.receive = role_ == Role::kClient ? down : up;
  wipe(up.data(), up.size());
  wipe(down.data(), down.size());
  return keys;
}

// Only now, when both have proved the secret, the flags count.
Handshake::Status Handshake::finish() noexcept {
  if (((clientFlags_ ^ serverFlags_) & kWantsEncryption) == 0) return Status::kDone;
  return fail(peerEncrypts() ? "has TUTTI_ENCRYPT=1, and this side has not: set it on every rank or on none"
                             : "has not set TUTTI_ENCRYPT=1 as this side has: set it on every rank or on none");
}

const char* Handshake::leftWhere(bool sending) noexcept {
  unproven_ = message_ == 3 && !sending;
  return unproven_ ? "hung up instead of proving the secret" : "hung up during the hello";
}

Handshake::Status Handshake::advance(int fd) noexcept {
  while (message_ < kMessages) {
    const bool out = sends();
    std::byte* place = buffer_.data() + moved_;
    const size_t rest = messageBytes() - moved_;
    const ssize_t n = out ? ::send(fd, place, rest, MSG_NOSIGNAL) : ::recv(fd, place, rest, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return out ? Status::kWantsWrite : Status::kWantsRead;
    hungUp_ = n <= 0;
    if (hungUp_) return fail(leftWhere(out));
    moved_ += static_cast<size_t>(n);
    if (!out && !looksRight()) return Status::kFailed;
    if (moved_ < messageBytes()) continue;
    if (!out && !accept()) return Status::kFailed;
    moved_ = 0;
    if (++message_ < kMessages && sends()) prepare();
  }
  return finish();
}

}  // namespace tutti
