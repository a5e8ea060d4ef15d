#include "job/secret.h"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "process/process_object.h"

namespace tutti::control {
namespace {

// About what a passphrase has a letter, and at most what random letters of one case and digits would be counted as.
constexpr double kBitsOfProse = 1.5, kBitsOfDigits = 3.3, kBitsOfHex = 4, kBitsOfBase64 = 6;
constexpr size_t kPasses = 3, kMemoryBytes = size_t{16} << 20;

Secret stretched(const std::string& text, const std::string& place) {
  std::array<unsigned char, crypto_pwhash_SALTBYTES> salt;
  const std::string bound = "tutti secret of " + place;
  hashInto(salt.data(), salt.size(), bound.data(), bound.size());
  Secret secret;
  if (crypto_pwhash(reinterpret_cast<unsigned char*>(secret.data()), secret.size(), text.data(), text.size(),
                    salt.data(), kPasses, kMemoryBytes, crypto_pwhash_ALG_ARGON2ID13) != 0)
    throw Error(ErrorCode::kSystem, fmt::format("no key can be made of TUTTI_SECRET (or TUTTI_SECRET_FILE): that "
                                                "takes {} MiB of memory, which cannot be had",
                                                kMemoryBytes >> 20));
  return secret;
}

// One of a process. Ranks that are its threads want the same, and the first of them computes it.
class LastSecret {
 public:
  Secret of(const std::string& text, const std::string& place) {
    std::lock_guard lock(mutex_);
    if (!known_ || text != text_ || place != place_) {
      known_ = false;
      secret_ = stretched(text, place);
      text_ = text;
      place_ = place;
      known_ = true;
    }
    return secret_;
  }

 private:
  std::mutex mutex_;  // guards what follows
  bool known_ = false;
  std::string text_, place_;
  Secret secret_{};
};

bool has(std::string_view text, int (*kind)(int)) {
  return std::any_of(text.begin(), text.end(), [&](unsigned char c) { return kind(c) != 0; });
}

bool isAll(std::string_view text, int (*kind)(int), std::string_view others = "") {
  return std::all_of(text.begin(), text.end(),
                     [&](unsigned char c) { return kind(c) != 0 || others.find(static_cast<char>(c)) != others.npos; });
}

double bitsOfALetter(std::string_view text) {
  const bool digits = has(text, std::isdigit);
  if (isAll(text, std::isdigit)) return kBitsOfDigits;
  if (isAll(text, std::isxdigit) && digits) return kBitsOfHex;
  const bool mixed = digits && has(text, std::islower) && has(text, std::isupper);
  return isAll(text, std::isalnum, "+/-_") && mixed ? kBitsOfBase64 : kBitsOfProse;
}

// Those letters that do not only continue a piece of four that has been there before.
size_t freshLetters(std::string_view text) {
  constexpr size_t kPiece = 4;
  if (text.size() < kPiece) return text.size();
  std::set<std::string_view> pieces;
  for (size_t at = 0; at + kPiece <= text.size(); ++at) pieces.insert(text.substr(at, kPiece));
  return pieces.size() + kPiece - 1;
}

}  // namespace

Secret secretFromText(const std::string& text, const std::string& place) {
  return ofThisProcess<LastSecret>().of(text, place);
}

double strengthOf(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);  // base64 fills up with them
  return static_cast<double>(freshLetters(text)) * bitsOfALetter(text);
}

}  // namespace tutti::control
