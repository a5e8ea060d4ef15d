#include "process/user_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/log.h"

namespace tutti {
namespace {

// What is judged is what is open, and not what may have come to its name since.
UniqueFd ifPrivate(UniqueFd fd, mode_t kind) noexcept {
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) return {};
  const bool closed = (file.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return closed && file.st_uid == ::geteuid() && (file.st_mode & S_IFMT) == kind ? std::move(fd) : UniqueFd();
}

}  // namespace

std::vector<std::string> userFolders() {
  return {fmt::format("/run/user/{}", ::geteuid()), fmt::format("/tmp/tutti-{}", ::geteuid())};
}

std::string chooseUserFolder(const std::vector<std::string>& candidates) {
  if (candidates.empty()) return {};
  for (const std::string& path : candidates)
    if (openUserFolder(path)) return path;
  const std::string& own = candidates.back();
  ::mkdir(own.c_str(), 0700);
  if (openUserFolder(own)) return own;
  log::info("{} is no folder of this user's with mode 0700: other users can know where the ranks of this host meet",
            own);
  return {};
}

UniqueFd openUserFolder(const std::string& path) noexcept {
  return ifPrivate(UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), S_IFDIR);
}

UniqueFd openUserFile(int folder, const std::string& name) noexcept {
  constexpr int kHow = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  return ifPrivate(UniqueFd(::openat(folder, name.c_str(), kHow)), S_IFREG);
}

}  // namespace tutti
