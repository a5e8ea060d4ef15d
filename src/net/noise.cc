#include "net/noise.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

namespace tutti::noise {
namespace {

static_assert(kKeyBytes == crypto_scalarmult_BYTES && kKeyBytes == crypto_scalarmult_SCALARBYTES);
static_assert(kKeyBytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(kHashBytes == crypto_generichash_BYTES_MAX);

constexpr size_t kHashBlockBytes = 128;

using Bytes = std::span<const std::byte>;
using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;

unsigned char* raw(std::byte* data) noexcept { return reinterpret_cast<unsigned char*>(data); }
const unsigned char* raw(const std::byte* data) noexcept { return reinterpret_cast<const unsigned char*>(data); }

class Blake2b {
 public:
  Blake2b() noexcept { crypto_generichash_init(&state_, nullptr, 0, kHashBytes); }
  ~Blake2b() { sodium_memzero(&state_, sizeof state_); }
  Blake2b(const Blake2b&) = delete;
  Blake2b& operator=(const Blake2b&) = delete;
  Blake2b& add(Bytes data) noexcept {
    crypto_generichash_update(&state_, raw(data.data()), data.size());
    return *this;
  }
  Hash end() noexcept {
    Hash out;
    crypto_generichash_final(&state_, raw(out.data()), out.size());
    return out;
  }

 private:
  crypto_generichash_state state_;
};

// The framework asks for HMAC (RFC 2104) over every hash, also over one that could be keyed by itself.
Hash hmac(const Hash& key, Bytes first, Bytes second = {}) noexcept {
  std::array<std::byte, kHashBlockBytes> inner, outer;
  inner.fill(std::byte{0x36});
  outer.fill(std::byte{0x5c});
  for (size_t i = 0; i < key.size(); ++i) {
    inner[i] ^= key[i];
    outer[i] ^= key[i];
  }
  Hash within = Blake2b().add(inner).add(first).add(second).end();
  const Hash out = Blake2b().add(outer).add(within).end();
  for (void* used : {static_cast<void*>(inner.data()), static_cast<void*>(outer.data())})
    sodium_memzero(used, kHashBlockBytes);
  sodium_memzero(within.data(), within.size());
  return out;
}

// The framework's HKDF: `outs` follow one from another.
void derive(const Hash& chaining, Bytes material, std::span<Hash> outs) noexcept {
  Hash base = hmac(chaining, material);
  Bytes before;
  for (size_t i = 0; i < outs.size(); ++i) {
    const auto count = static_cast<std::byte>(i + 1);
    outs[i] = hmac(base, before, {&count, 1});
    before = outs[i];
  }
  sodium_memzero(base.data(), base.size());
}

SecretKey keyFrom(const Hash& hash) noexcept {
  SecretKey key;
  std::copy_n(hash.begin(), key.size(), key.begin());
  return key;
}

Nonce nonceOf(uint64_t number) noexcept {
  Nonce nonce{};
  std::memcpy(nonce.data() + nonce.size() - sizeof number, &number, sizeof number);
  return nonce;
}

}  // namespace

SecretKey::~SecretKey() { sodium_memzero(data(), size()); }

KeyPair keyPairOf(const Key& secret) noexcept {
  KeyPair pair;
  pair.secret = secret;
  crypto_scalarmult_base(raw(pair.open.data()), raw(pair.secret.data()));
  return pair;
}

KeyPair drawKeyPair() noexcept {
  SecretKey secret;
  randombytes_buf(secret.data(), secret.size());
  return keyPairOf(secret);
}

void seal(const Key& key, uint64_t number, Bytes associated, Bytes clear, std::byte* sealed) noexcept {
  crypto_aead_chacha20poly1305_ietf_encrypt(raw(sealed), nullptr, raw(clear.data()), clear.size(),
                                            raw(associated.data()), associated.size(), nullptr, nonceOf(number).data(),
                                            raw(key.data()));
}

bool open(const Key& key, uint64_t number, Bytes associated, Bytes sealed, std::byte* clear) noexcept {
  return sealed.size() >= kTagBytes &&
         crypto_aead_chacha20poly1305_ietf_decrypt(raw(clear), nullptr, nullptr, raw(sealed.data()), sealed.size(),
                                                   raw(associated.data()), associated.size(), nonceOf(number).data(),
                                                   raw(key.data())) == 0;
}

Session::Session(const Pattern& pattern, bool initiator, Bytes prologue, const Key& psk, const KeyPair& own,
                 const Key& peer) noexcept
    : pattern_(&pattern), initiator_(initiator), psk_(psk), own_(own), peerStatic_(peer) {
  for (const auto& message : pattern.messages) usesPsk_ |= std::ranges::find(message, Token::kPsk) != message.end();
  begin(prologue);
}

Session::~Session() { forget(); }

void Session::forget() noexcept {
  failed_ = true;
  for (Hash* hash : {&hash_, &chaining_}) sodium_memzero(hash->data(), hash->size());
  for (Key* key : {&key_, &psk_, &own_.secret, &ephemeral_.secret}) sodium_memzero(key->data(), key->size());
}

// A name that fits is the first hash as it is, padded with zeros: ours all do.
void Session::begin(Bytes prologue) noexcept {
  std::memcpy(hash_.data(), pattern_->name, std::min(std::strlen(pattern_->name), hash_.size()));
  chaining_ = hash_;
  mixHash(prologue);
  if (pattern_->initiatorKnown) mixHash(initiator_ ? own_.open : peerStatic_);
  if (pattern_->responderKnown) mixHash(initiator_ ? peerStatic_ : own_.open);
}

std::array<Token, 6> Session::tokens() const noexcept {
  return message_ < pattern_->messages.size() ? pattern_->messages[message_] : std::array<Token, 6>{};
}

size_t Session::overhead() const noexcept {
  size_t bytes = 0;
  bool keyed = hasKey_;
  for (const Token token : tokens()) {
    if (token == Token::kEnd) break;
    if (token == Token::kE || token == Token::kNonce)
      bytes += kKeyBytes;
    else if (token == Token::kS)
      bytes += kKeyBytes + (keyed ? kTagBytes : 0);
    keyed = keyed || (token != Token::kE && token != Token::kS) || (token == Token::kE && usesPsk_);
  }
  return bytes + (keyed ? kTagBytes : 0);
}

void Session::mixHash(Bytes data) noexcept { hash_ = Blake2b().add(hash_).add(data).end(); }

void Session::mixKey(Bytes material) noexcept {
  std::array<Hash, 2> out;
  derive(chaining_, material, out);
  chaining_ = out[0];
  key_ = keyFrom(out[1]);
  sodium_memzero(out.data(), sizeof out);
  hasKey_ = true;
  number_ = 0;
}

void Session::mixPsk() noexcept {
  std::array<Hash, 3> out;
  derive(chaining_, psk_, out);
  chaining_ = out[0];
  mixHash(out[1]);
  key_ = keyFrom(out[2]);
  sodium_memzero(out.data(), sizeof out);
  hasKey_ = true;
  number_ = 0;
}

// With a psk alone two handshakes would share their keys: what is fresh goes into them as well.
void Session::mixOpen(const Key& key) noexcept {
  mixHash(key);
  if (usesPsk_) mixKey(key);
}

// A key of the peer's that gives nothing but zeros is not one of an honest peer.
bool Session::product(const Key& secret, const Key& open) noexcept {
  SecretKey shared;
  if (crypto_scalarmult(raw(shared.data()), raw(secret.data()), raw(open.data())) != 0) return false;
  mixKey(shared);
  return true;
}

bool Session::mixProduct(Token token) noexcept {
  switch (token) {
    case Token::kEe:
      return product(ephemeral_.secret, peerEphemeral_);
    case Token::kSs:
      return product(own_.secret, peerStatic_);
    case Token::kEs:
      return initiator_ ? product(ephemeral_.secret, peerStatic_) : product(own_.secret, peerEphemeral_);
    default:
      return initiator_ ? product(own_.secret, peerEphemeral_) : product(ephemeral_.secret, peerStatic_);
  }
}

std::byte* Session::sealAndMix(Bytes clear, std::byte* out) noexcept {
  const size_t bytes = clear.size() + (hasKey_ ? kTagBytes : 0);
  if (hasKey_)
    seal(key_, number_++, hash_, clear, out);
  else
    std::copy(clear.begin(), clear.end(), out);
  mixHash({out, bytes});
  return out + bytes;
}

bool Session::openAndMix(Bytes sealed, std::byte* clear) noexcept {
  if (!hasKey_)
    std::copy(sealed.begin(), sealed.end(), clear);
  else if (!open(key_, number_++, hash_, sealed, clear))
    return false;
  mixHash(sealed);
  return true;
}

std::byte* Session::writeToken(Token token, std::byte* out) noexcept {
  switch (token) {
    case Token::kE:
      if (ephemeral_.open == Key{}) ephemeral_ = drawKeyPair();
      break;
    case Token::kNonce:
      randombytes_buf(ephemeral_.open.data(), ephemeral_.open.size());
      break;
    case Token::kS:
      return sealAndMix(own_.open, out);
    case Token::kPsk:
      return mixPsk(), out;
    default:
      failed_ = !mixProduct(token);
      return out;
  }
  mixOpen(ephemeral_.open);
  return std::copy(ephemeral_.open.begin(), ephemeral_.open.end(), out);
}

const std::byte* Session::readToken(Token token, const std::byte* in) noexcept {
  const size_t sealedBytes = kKeyBytes + (hasKey_ ? kTagBytes : 0);
  switch (token) {
    case Token::kE:
    case Token::kNonce:
      std::copy_n(in, kKeyBytes, peerEphemeral_.begin());
      mixOpen(peerEphemeral_);
      return in + kKeyBytes;
    case Token::kS:
      failed_ = !openAndMix({in, sealedBytes}, peerStatic_.data());
      return in + sealedBytes;
    case Token::kPsk:
      return mixPsk(), in;
    default:
      failed_ = !mixProduct(token);
      return in;
  }
}

bool Session::write(Bytes payload, std::byte* message) noexcept {
  for (const Token token : tokens())
    if (token != Token::kEnd && !failed_) message = writeToken(token, message);
  if (failed_) return false;
  sealAndMix(payload, message);
  ++message_;
  return true;
}

bool Session::read(Bytes message, std::byte* payload) noexcept {
  failed_ = failed_ || message.size() < overhead();
  const std::byte* at = message.data();
  for (const Token token : tokens())
    if (token != Token::kEnd && !failed_) at = readToken(token, at);
  if (failed_) return false;
  failed_ = !openAndMix({at, static_cast<size_t>(message.data() + message.size() - at)}, payload);
  ++message_;
  return !failed_;
}

Split Session::split() const noexcept {
  std::array<Hash, 2> out;
  derive(chaining_, {}, out);
  Split keys{keyFrom(out[0]), keyFrom(out[1])};
  sodium_memzero(out.data(), sizeof out);
  return keys;
}

}  // namespace tutti::noise
