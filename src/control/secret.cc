// What a user says of the secret, as text or in a file.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/handshake.h"
#include "control/launcher.h"

namespace tutti::control {
namespace {

struct FileCloser {
  void operator()(FILE* file) const noexcept { std::fclose(file); }
};

bool isHex(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

Secret secretFromText(const std::string& text) {
  Secret secret{};
  if (text.size() == 2 * kSecretBytes && isHex(text)) {
    for (size_t i = 0; i < kSecretBytes; ++i)
      secret[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  } else {
    hashInto(secret.data(), secret.size(), text.data(), text.size());
  }
  return secret;
}

// A folder can be opened, and only says when it is read that it is none.
std::string readSmallFile(const std::string& path) {
  constexpr size_t kMostBytes = size_t{64} << 10;
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::kInvalidUsage, fmt::format("it cannot be read: {}", why));
  };
  const std::unique_ptr<FILE, FileCloser> file(std::fopen(path.c_str(), "re"));
  if (!file) refuse(errnoText(errno));
  std::string text(kMostBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) refuse(errnoText(errno));
  if (text.size() > kMostBytes) refuse("it has more than 65536 bytes");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  return text;
}

}  // namespace tutti::control
