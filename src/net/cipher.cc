#include "net/cipher.h"

#include <sodium.h>

#include <cstring>

namespace tutti {
namespace {

static_assert(Cipher::kTagBytes == crypto_aead_aes256gcm_ABYTES);
static_assert(Cipher::kTagBytes == crypto_aead_xchacha20poly1305_ietf_ABYTES);
static_assert(sizeof(CipherKey) == crypto_aead_aes256gcm_KEYBYTES);
static_assert(sizeof(CipherKey) == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);

// Also an empty record uses a key up.
constexpr uint64_t kBytesPerRecord = 64;

unsigned char* raw(std::byte* data) noexcept { return reinterpret_cast<unsigned char*>(data); }
const unsigned char* raw(const std::byte* data) noexcept { return reinterpret_cast<const unsigned char*>(data); }

}  // namespace

bool hasAes256Gcm() noexcept { return sodium_init() >= 0 && crypto_aead_aes256gcm_is_available() == 1; }

void wipe(void* data, size_t bytes) noexcept { sodium_memzero(data, bytes); }

struct Cipher::State {
  crypto_aead_aes256gcm_state aes;  // the expanded key
  CipherKind kind;
  bool broken = false;
  CipherKey key;
  std::array<unsigned char, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES> nonce{};
  uint64_t number = 0, used = 0, bytesPerKey;

  State(CipherKind chosen, const CipherKey& first, uint64_t limit) noexcept
      : kind(chosen), key(first), bytesPerKey(limit) {
    expand();
  }
  ~State() { wipe(this, sizeof *this); }

  void expand() noexcept {
    if (kind == CipherKind::kAes256Gcm) crypto_aead_aes256gcm_beforenm(&aes, raw(key.data()));
  }
  // Numbers never start again, so that no nonce returns even if a key did.
  void nextRecord(size_t bytes) noexcept {
    ++number;
    used += bytes + kBytesPerRecord;
    if (used < bytesPerKey) return;
    static constexpr char kLabel[] = "tutti next key";
    CipherKey next;
    crypto_generichash(raw(next.data()), next.size(), reinterpret_cast<const unsigned char*>(kLabel), sizeof kLabel,
                       raw(key.data()), key.size());
    key = next;
    wipe(next.data(), next.size());
    expand();
    used = 0;
  }
  const unsigned char* currentNonce() noexcept {
    std::memcpy(nonce.data(), &number, sizeof number);
    return nonce.data();
  }
};

Cipher::Cipher(CipherKind kind, const CipherKey& key, uint64_t bytesPerKey)
    : state_(std::make_unique<State>(kind, key, bytesPerKey)) {}
Cipher::~Cipher() = default;
Cipher::Cipher(Cipher&&) noexcept = default;
Cipher& Cipher::operator=(Cipher&&) noexcept = default;

bool Cipher::seal(std::byte* sealed, std::byte* tag, const std::byte* clear, size_t bytes) noexcept {
  if (!state_) return false;
  State& s = *state_;
  // The library wants an address even where there are no bytes.
  if (bytes == 0) clear = sealed = tag;
  const unsigned char* nonce = s.currentNonce();
  if (s.kind == CipherKind::kAes256Gcm)
    crypto_aead_aes256gcm_encrypt_detached_afternm(raw(sealed), raw(tag), nullptr, raw(clear), bytes, nullptr, 0,
                                                   nullptr, nonce, &s.aes);
  else
    crypto_aead_xchacha20poly1305_ietf_encrypt_detached(raw(sealed), raw(tag), nullptr, raw(clear), bytes, nullptr, 0,
                                                        nullptr, nonce, raw(s.key.data()));
  s.nextRecord(bytes);
  return true;
}

bool Cipher::open(std::byte* clear, const std::byte* sealed, size_t bytes, const std::byte* tag) noexcept {
  if (!state_ || state_->broken) return false;
  State& s = *state_;
  std::byte nothing{};
  if (bytes == 0) {
    clear = &nothing;
    sealed = tag;
  }
  const unsigned char* nonce = s.currentNonce();
  const int failed = s.kind == CipherKind::kAes256Gcm
                         ? crypto_aead_aes256gcm_decrypt_detached_afternm(raw(clear), nullptr, raw(sealed), bytes,
                                                                          raw(tag), nullptr, 0, nonce, &s.aes)
                         : crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
                               raw(clear), nullptr, raw(sealed), bytes, raw(tag), nullptr, 0, nonce, raw(s.key.data()));
  s.broken = failed != 0;
  if (!s.broken) s.nextRecord(bytes);
  return !s.broken;
}

}  // namespace tutti
