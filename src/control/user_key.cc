#include "control/user_key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "base/fd.h"
#include "base/handshake.h"
#include "base/private_file.h"

namespace tutti::control {
namespace {

constexpr const char* kName = "tutti-key";

// Whether what the descriptor leads to is this user's, and closed to all others.
bool isPrivate(int fd) noexcept {
  struct stat file {};
  return ::fstat(fd, &file) == 0 && file.st_uid == ::geteuid() && (file.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

std::optional<UserKey> readKey(int folder) {
  const UniqueFd file(::openat(folder, kName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  UserKey key{};
  if (!file || !isPrivate(file.get())) return std::nullopt;
  if (::read(file.get(), key.data(), key.size()) != static_cast<ssize_t>(key.size())) return std::nullopt;
  return key;
}

// Under its name the key is there as a whole or not at all, and of several that are drawn at once one stays.
void drawKey(int folder) {
  UserKey key{};
  fillRandom(key.data(), key.size());
  const std::string draft = fmt::format(".{}.{:016x}", kName, randomNumber());
  if (writePrivateFile(folder, draft, {reinterpret_cast<const char*>(key.data()), key.size()}) != 0) return;
  ::linkat(folder, draft.c_str(), folder, kName, 0);
  ::unlinkat(folder, draft.c_str(), 0);
}

}  // namespace

std::optional<UserKey> userKeyIn(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || !isPrivate(fd.get())) return std::nullopt;
  if (const auto key = readKey(fd.get())) return key;
  drawKey(fd.get());
  return readKey(fd.get());
}

std::optional<UserKey> userKey(const std::optional<std::string>& runtimeFolder) {
  if (runtimeFolder)
    if (const auto key = userKeyIn(*runtimeFolder)) return key;
  const std::string folder = fmt::format("/tmp/tutti-{}", ::geteuid());
  ::mkdir(folder.c_str(), 0700);
  return userKeyIn(folder);
}

}  // namespace tutti::control
