#include "net/handshake.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/random.h"

namespace tutti {
namespace {

// The last byte is the version of the hello.
constexpr std::array<char, 8> kMagic = {'t', 'u', 't', 't', 'i', 'H', 'i', 4};

constexpr uint8_t kWantsEncryption = 1, kHasAes = 2;

// What a key is for goes into it, so that none that comes of one secret is used twice.
noise::SecretKey pskOf(const std::array<std::byte, 16>& secret) noexcept {
  static constexpr char kLabel[] = "tutti hello psk";
  noise::SecretKey key;
  hashInto(key.data(), key.size(), kLabel, sizeof kLabel - 1, secret.data(), secret.size());
  return key;
}

// What both must mean alike: magic and version, the job, the listener.
std::array<std::byte, 24> prologueOf(const HandshakeContext& context) noexcept {
  std::array<std::byte, 24> prologue;
  std::memcpy(prologue.data(), kMagic.data(), kMagic.size());
  std::memcpy(prologue.data() + 8, &context.job, sizeof context.job);
  std::memcpy(prologue.data() + 16, &context.listener, sizeof context.listener);
  return prologue;
}

const noise::Pattern& patternOf(const HandshakeContext& context) noexcept {
  return context.local ? noise::kPskOnly : context.named ? noise::kIKpsk1 : noise::kNNpsk0;
}

void deriveInto(CipherKey& key, const char* label, const noise::Key& from) noexcept {
  hashInto(key.data(), key.size(), label, std::strlen(label), from.data(), from.size());
}

}  // namespace

Handshake::Handshake(Role role, const HandshakeContext& context) noexcept
    : role_(role),
      encryption_(context.encryption),
      aes_(context.aes),
      seen_(role == Role::kServer ? context.seen : nullptr),
      session_(patternOf(context), role == Role::kClient, prologueOf(context), pskOf(context.secret), context.own,
               context.peer) {}

Handshake::Status Handshake::fail(const char* why) noexcept {
  error_ = why;
  return Status::kFailed;
}

size_t Handshake::messageBytes() const noexcept {
  return message_ < 2 ? kMagicBytes + session_.overhead() + kFlagsBytes : noise::kTagBytes;
}

bool Handshake::prepare() noexcept {
  if (message_ == 2) {
    noise::seal(split_.toResponder, 0, {}, {}, buffer_.data());
    return true;
  }
  uint8_t& flags = message_ == 0 ? clientFlags_ : serverFlags_;
  flags = ownFlags();
  std::memcpy(buffer_.data(), kMagic.data(), kMagicBytes);
  const bool made = session_.write(std::as_bytes(std::span(&flags, 1)), buffer_.data() + kMagicBytes);
  if (made && message_ == 1) split_ = session_.split();
  return made;
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

// A server that follows its caller has heard it when it answers.
uint8_t Handshake::ownFlags() const noexcept {
  const bool follows = encryption_ == Encryption::kAsCalled;
  const bool wants = follows ? peerEncrypts() : encryption_ == Encryption::kOn;
  return static_cast<uint8_t>((wants ? kWantsEncryption : 0) | (aes_ ? kHasAes : 0));
}

bool Handshake::peerEncrypts() const noexcept { return (peerFlags() & kWantsEncryption) != 0; }

// Of the first message, in every pattern what it begins with.
noise::Key Handshake::freshKey() const noexcept {
  noise::Key key;
  std::copy_n(buffer_.begin() + kMagicBytes, key.size(), key.begin());
  return key;
}

bool Handshake::repeats() const noexcept { return message_ == 0 && seen_ != nullptr && seen_->has(freshKey()); }

bool Handshake::accept() noexcept {
  const std::span<const std::byte> message(buffer_.data(), bytes_);
  if (repeats()) {
    error_ = "repeats a hello that came before: it was recorded";
    return false;
  }
  if (message_ == 2) {
    std::byte nothing;
    unproven_ = !noise::open(split_.toResponder, 0, {}, message, &nothing);
  } else {
    uint8_t& flags = message_ == 0 ? clientFlags_ : serverFlags_;
    unproven_ = !session_.read(message.subspan(kMagicBytes), reinterpret_cast<std::byte*>(&flags));
    if (!unproven_ && message_ == 1) split_ = session_.split();
    if (!unproven_ && message_ == 0 && seen_ != nullptr) seen_->add(freshKey());
  }
  if (unproven_) error_ = "does not know the secret of this job";
  return !unproven_;
}

SessionKeys Handshake::keys(Use use) const noexcept {
  const char* label = use == Use::kControl ? "tutti control" : use == Use::kData ? "tutti data" : "tutti secret";
  const bool client = role_ == Role::kClient;
  SessionKeys keys;
  keys.kind = (clientFlags_ & serverFlags_ & kHasAes) != 0 ? CipherKind::kAes256Gcm : CipherKind::kXChaCha20Poly1305;
  deriveInto(keys.send, label, client ? split_.toResponder : split_.toInitiator);
  deriveInto(keys.receive, label, client ? split_.toInitiator : split_.toResponder);
  return keys;
}

// Not zeros, of which everybody can make keys.
void Handshake::forgetKeys() noexcept {
  for (noise::Key* key : {&split_.toResponder, &split_.toInitiator}) fillRandom(key->data(), key->size());
}

bool Handshake::differ() const noexcept { return ((clientFlags_ ^ serverFlags_) & kWantsEncryption) != 0; }

Handshake::Status Handshake::finish() noexcept {
  session_.forget();
  if (!differ()) return Status::kDone;
  return fail(peerEncrypts() ? "has TUTTI_ENCRYPT=1, and this side has not: set it on every rank or on none"
                             : "has not set TUTTI_ENCRYPT=1 as this side has: set it on every rank or on none");
}

// A server that hangs up on a hello has not found the secret in it.
const char* Handshake::leftWhere(bool sending) noexcept {
  unproven_ = message_ == 1 && !sending;
  return unproven_ ? "hung up instead of proving the secret" : "hung up during the hello";
}

// Sides that differ in what they want sealed both know it after two messages, and leave it at that.
Handshake::Status Handshake::advance(int fd) noexcept {
  while (message_ < kMessages && !(message_ == 2 && differ())) {
    const bool out = sends();
    if (!std::exchange(begun_, true)) {
      bytes_ = messageBytes();
      if (out && !prepare()) return fail("sent a key that cannot be");
    }
    std::byte* place = buffer_.data() + moved_;
    const size_t rest = bytes_ - moved_;
    const ssize_t n = out ? ::send(fd, place, rest, MSG_NOSIGNAL) : ::recv(fd, place, rest, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return out ? Status::kWantsWrite : Status::kWantsRead;
    hungUp_ = n <= 0;
    if (hungUp_) return fail(leftWhere(out));
    moved_ += static_cast<size_t>(n);
    if (!out && !looksRight()) return Status::kFailed;
    if (moved_ < bytes_) continue;
    if (!out && !accept()) return Status::kFailed;
    moved_ = 0;
    begun_ = false;
    ++message_;
  }
  return finish();
}

}  // namespace tutti
