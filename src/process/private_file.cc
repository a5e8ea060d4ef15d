#include "process/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/error.h"
#include "base/trimmed.h"
#include "process/fd.h"
#include "process/thread.h"

namespace tutti {
namespace {

bool writeAll(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

[[noreturn]] void distrust(const std::string& why) { throw Error(ErrorCode::kInvalidUsage, why); }

[[noreturn]] void notRead(int error) {
  throw Error(ErrorCode::kSystem, fmt::format("it cannot be read: {}", errnoText(error)));
}

// Of what stands in the way, what does not go away by itself.
bool lasts(int error) noexcept {
  constexpr int kLasting[] = {EACCES, EPERM, ELOOP, ENOTDIR, ENAMETOOLONG, ENXIO, ENODEV};
  return std::ranges::find(kLasting, error) != std::end(kLasting);
}

const char* kindOf(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// What its user can do about the mode: of a file of root's, which may be mounted read-only, nothing but ask for it.
std::string remedyFor(const struct stat& file, const std::string& path) {
  if (file.st_uid == ::geteuid()) return fmt::format("run `chmod 600 {}`", path);
  return "it is root's, so have it made with mode 0400, or with 0440 for a group of yours";
}

void requireTrust(const struct stat& file, const std::string& path) {
  if (!S_ISREG(file.st_mode)) distrust(fmt::format("it is {}, not a regular file", kindOf(file.st_mode)));
  if (file.st_uid != ::geteuid() && file.st_uid != 0)
    distrust(fmt::format("it belongs to user {}, who could change it: it must be yours (user {}) or root's",
                         file.st_uid, ::geteuid()));
  constexpr mode_t kChange = S_IWGRP | S_IWOTH;
  const mode_t theirs = file.st_mode & (kChange | S_IROTH | (file.st_uid == 0 ? 0 : S_IRGRP));
  if (theirs == 0) return;
  distrust(fmt::format("its mode is {:04o}: other users may {} what proves membership of the job; {}",
                       file.st_mode & 07777, (theirs & kChange) != 0 ? "change" : "read", remedyFor(file, path)));
}

// What can be seen of it from outside says more than the system's word.
[[noreturn]] void notOpened(const std::string& path, int error) {
  struct stat file {};
  const bool seen = ::stat(path.c_str(), &file) == 0;
  if (seen) requireTrust(file, path);
  if (!lasts(error)) notRead(error);
  const std::string remedy = error != EACCES ? "" : "; " + (seen ? remedyFor(file, path) : "see the folders above it");
  distrust(fmt::format("it cannot be read: {}{}", errnoText(error), remedy));
}

std::string readUpTo(int fd, size_t bytes) {
  std::string text(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t n = ::read(fd, text.data() + have, bytes - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) notRead(errno);
    if (n == 0) break;
    have += static_cast<size_t>(n);
  }
  text.resize(have);
  return text;
}

}  // namespace

int writePrivateFile(int folder, const std::string& path, std::string_view content) noexcept {
  UniqueFd file(::openat(folder, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno;
  const FileSignalHeld held;
  // Some file systems tell only at the end that there was no room.
  if (writeAll(file.get(), content) && ::close(file.release()) == 0) return 0;
  const int error = errno;
  ::unlinkat(folder, path.c_str(), 0);
  return error;
}

// What is judged is what is read: the descriptor, not the name.
std::string readPrivateFile(const std::string& path, size_t mostBytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) notOpened(path, errno);
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) notRead(errno);
  requireTrust(file, path);
  const std::string text = readUpTo(fd.get(), mostBytes + 1);
  if (text.size() > mostBytes) distrust(fmt::format("it has more than {} bytes", mostBytes));
  return std::string(trimmed(text));
}

}  // namespace tutti
