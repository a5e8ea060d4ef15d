#include "base/handshake.h"

#include <sodium.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

// The last byte is the version of the hello.
constexpr std::array<char, 8> kMagic = {'t', 'u', 't', 't', 'i', 'H', 'i', 1};

void ensureSodium() noexcept {
  static const int ready = sodium_init();
  (void)ready;  // fails only where the system has no source of random bytes, and then the calls below end the process
}

}  // namespace

void fillRandom(void* data, size_t bytes) noexcept {
  ensureSodium();
  randombytes_buf(data, bytes);
}

uint64_t randomNumber() noexcept {
  uint64_t number = 0;
  fillRandom(&number, sizeof number);
  return number;
}

void hashInto(void* out, size_t outBytes, const void* data, size_t bytes, const void* key, size_t keyBytes) noexcept {
  ensureSodium();
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

Handshake::~Handshake() {
  sodium_memzero(&context_, sizeof context_);
  sodium_memzero(&keys_, sizeof keys_);
}

Handshake::Status Handshake::fail(const char* why) noexcept {
  error_ = why;
  return Status::kFailed;
}

void Handshake::prepare() noexcept {
  if (message_ < 2) {
    std::memcpy(buffer_.data(), kMagic.data(), kMagicBytes);
    std::memcpy(buffer_.data() + kMagicBytes, (message_ == 0 ? clientNonce_ : serverNonce_).data(), kNonceBytes);
  } else {
    const Mac proof = mac(message_ == 2 ? "client" : "server");
    std::memcpy(buffer_.data(), proof.data(), kMacBytes);
  }
}

bool Handshake::acceptHello() noexcept {
  if (std::memcmp(buffer_.data(), kMagic.data(), kMagicBytes - 1) != 0) {
    error_ = "does not speak tutti's protocol";
    return false;
  }
  if (static_cast<char>(buffer_[kMagicBytes - 1]) != kMagic.back()) {
    error_ = "speaks another version of tutti's protocol";
    return false;
  }
  std::memcpy((message_ == 0 ? clientNonce_ : serverNonce_).data(), buffer_.data() + kMagicBytes, kNonceBytes);
  return true;
}

bool Handshake::accept() noexcept {
  if (message_ < 2) return acceptHello();
  const Mac expected = mac(message_ == 2 ? "client" : "server");
  if (sodium_memcmp(expected.data(), buffer_.data(), kMacBytes) == 0) return true;
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
  add(clientNonce_.data(), clientNonce_.size());
  add(serverNonce_.data(), serverNonce_.size());
  crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(out.data()), out.size());
  return out;
}

void Handshake::deriveKeys() noexcept {
  const Mac up = mac("key to server"), down = mac("key to client");
  keys_.send = role_ == Role::kClient ? up : down;
  keys_.receive = role_ == Role::kClient ? down : up;
}

Handshake::Status Handshake::advance(int fd) noexcept {
  while (message_ < kMessages) {
    const bool out = sends();
    std::byte* place = buffer_.data() + moved_;
    const size_t rest = messageBytes() - moved_;
    const ssize_t n = out ? ::send(fd, place, rest, MSG_NOSIGNAL) : ::recv(fd, place, rest, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return out ? Status::kWantsWrite : Status::kWantsRead;
    if (n <= 0) return fail(message_ < 3 ? "hung up during the hello" : "hung up instead of proving the secret");
    moved_ += static_cast<size_t>(n);
    if (moved_ < messageBytes()) continue;
    if (!out && !accept()) return Status::kFailed;
    moved_ = 0;
    if (++message_ < kMessages && sends()) prepare();
  }
  deriveKeys();
  return Status::kDone;
}

}  // namespace tutti
