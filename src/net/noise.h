// Handshakes of the Noise protocol framework (noiseprotocol.org, revision 34) with X25519, ChaCha20-Poly1305 and
// BLAKE2b, over libsodium. Patterns are data. Nothing here allocates, and nothing knows of sockets.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::noise {

inline constexpr size_t kKeyBytes = 32, kTagBytes = 16, kHashBytes = 64;
using Key = std::array<std::byte, kKeyBytes>;
using Hash = std::array<std::byte, kHashBytes>;

// Wiped when it goes.
struct SecretKey : Key {
  SecretKey() noexcept : Key{} {}
  SecretKey(const Key& key) noexcept : Key(key) {}
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();
};

struct KeyPair {
  SecretKey secret;  // what stays here
  Key open{};        // what everyone may have
};
KeyPair drawKeyPair() noexcept;
KeyPair keyPairOf(const Key& secret) noexcept;

// kNonce is ours: random bytes that are treated like the key of kE, but that nobody computes with.
enum class Token : uint8_t { kEnd, kE, kS, kEe, kEs, kSe, kSs, kPsk, kNonce };

struct Pattern {
  const char* name;                     // of the whole protocol
  bool initiatorKnown, responderKnown;  // their static keys, before the first message
  std::array<std::array<Token, 6>, 3> messages;
};

// Who knows the secret, and nothing more.
inline constexpr Pattern kNNpsk0{
    "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b", false, false, {{{Token::kPsk, Token::kE}, {Token::kE, Token::kEe}, {}}}};
// The same where nobody can have listened: without the products, and so without forward secrecy. Not of the framework.
inline constexpr Pattern kPskOnly{
    "tutti_psk0_ChaChaPoly_BLAKE2b", false, false, {{{Token::kPsk, Token::kNonce}, {Token::kNonce}, {}}}};
// Who knows the secret and has the static key of that name.
inline constexpr Pattern kIKpsk1{
    "Noise_IKpsk1_25519_ChaChaPoly_BLAKE2b",
    false,
    true,
    {{{Token::kE, Token::kEs, Token::kS, Token::kSs, Token::kPsk}, {Token::kE, Token::kEe, Token::kSe}, {}}}};
// One message, from one whose static key is known to one whose is.
inline constexpr Pattern kK{
    "Noise_K_25519_ChaChaPoly_BLAKE2b", true, true, {{{Token::kE, Token::kEs, Token::kSs}, {}, {}}}};

// One message of a key that is used for nothing but such messages, each with a number of its own. `sealed` gets
// kTagBytes more than there are of `clear`.
void seal(const Key& key, uint64_t number, std::span<const std::byte> associated, std::span<const std::byte> clear,
          std::byte* sealed) noexcept;
[[nodiscard]] bool open(const Key& key, uint64_t number, std::span<const std::byte> associated,
                        std::span<const std::byte> sealed, std::byte* clear) noexcept;

struct Split {
  SecretKey toResponder, toInitiator;
};

// One side of one handshake. The sides take turns, the initiator first; what fails once is over. Wiped when it goes.
class Session {
 public:
  Session(const Pattern& pattern, bool initiator, std::span<const std::byte> prologue, const Key& psk,
          const KeyPair& own = {}, const Key& peer = {}) noexcept;
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Of the next message, beyond its payload.
  size_t overhead() const noexcept;
  // Writes the next message, overhead() + payload.size() bytes. False only where the peer sent a key that cannot be.
  [[nodiscard]] bool write(std::span<const std::byte> payload, std::byte* message) noexcept;
  // Reads the next one into `payload`, overhead() bytes shorter; false when it is not from one who has what it takes.
  [[nodiscard]] bool read(std::span<const std::byte> message, std::byte* payload) noexcept;
  // After the last message, and before forget().
  Split split() const noexcept;
  // Wipes all that was secret. What is left is peerKey(): nothing can be written or read any more.
  void forget() noexcept;
  const Key& peerKey() const noexcept { return peerStatic_; }  // once it is known
  const Hash& hash() const noexcept { return hash_; }
  // For tests against known answers: instead of a key that is drawn.
  void setEphemeral(const KeyPair& pair) noexcept { ephemeral_ = pair; }

 private:
  void begin(std::span<const std::byte> prologue) noexcept;
  std::array<Token, 6> tokens() const noexcept;
  void mixHash(std::span<const std::byte> data) noexcept;
  void mixKey(std::span<const std::byte> material) noexcept;
  void mixPsk() noexcept;
  void mixOpen(const Key& key) noexcept;
  bool mixProduct(Token token) noexcept;
  bool product(const Key& secret, const Key& open) noexcept;
  std::byte* sealAndMix(std::span<const std::byte> clear, std::byte* out) noexcept;
  bool openAndMix(std::span<const std::byte> sealed, std::byte* clear) noexcept;
  std::byte* writeToken(Token token, std::byte* out) noexcept;
  const std::byte* readToken(Token token, const std::byte* in) noexcept;

  const Pattern* pattern_;
  bool initiator_, usesPsk_ = false, hasKey_ = false, failed_ = false;
  size_t message_ = 0;
  uint64_t number_ = 0;
  Hash hash_{}, chaining_{};
  SecretKey key_, psk_;
  KeyPair own_, ephemeral_;
  Key peerStatic_, peerEphemeral_{};
};

}  // namespace tutti::noise
