#include "diagnose/draft.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

#include "base/random.h"

namespace tutti::comm {
namespace {

constexpr std::string_view kEnd = ".part";

constexpr std::string_view kSomewhere = "0000000000000000";

// Where a process's number means the same: this start of this host, and this space of process numbers. kSomewhere where
// they cannot be known, as without /proc.
std::string home() {
  std::string text;
  struct stat space {};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  if (text.empty() || ::stat("/proc/self/ns/pid", &space) != 0) return std::string(kSomewhere);
  text += fmt::format("/{}", space.st_ino);
  uint64_t number = 0;
  hashInto(&number, sizeof number, text.data(), text.size());
  return fmt::format("{:016x}", number);
}

// "<record>.<home>.<pid>.<random>.part": the process, if it is one of this home's.
std::optional<pid_t> writerOf(std::string_view name, std::string_view home) {
  if (!name.ends_with(kEnd)) return std::nullopt;
  name.remove_suffix(kEnd.size());
  const size_t random = name.rfind('.'), pid = random == name.npos ? name.npos : name.rfind('.', random - 1);
  if (pid == name.npos || !name.substr(0, pid).ends_with(fmt::format(".{}", home))) return std::nullopt;
  pid_t writer = 0;
  const char* const end = name.data() + random;
  const auto [stop, error] = std::from_chars(name.data() + pid + 1, end, writer);
  return error == std::errc() && stop == end && writer > 0 ? std::optional(writer) : std::nullopt;
}

bool hasEnded(pid_t process) noexcept { return ::kill(process, 0) != 0 && errno == ESRCH; }

bool isFile(int folder, const char* name) noexcept {
  struct stat there {};
  return ::fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(there.st_mode);
}

struct Closing {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

}  // namespace

std::string draftOf(const std::string& path) {
  return fmt::format("{}.{}.{}.{:016x}{}", path, home(), ::getpid(), randomNumber(), kEnd);
}

// Not by std::filesystem, whose iterators end the process where memory runs out.
void removeOrphans(const std::string& folder) noexcept try {
  const std::string here = home();
  if (here == kSomewhere) return;  // so may others be, on any host
  const std::unique_ptr<DIR, Closing> entries(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!entries) return;
  const int there = ::dirfd(entries.get());
  while (const dirent* entry = ::readdir(entries.get())) {
    const auto writer = writerOf(entry->d_name, here);
    if (writer && hasEnded(*writer) && isFile(there, entry->d_name)) ::unlinkat(there, entry->d_name, 0);
  }
} catch (const std::exception&) {  // the record that is to be written matters more
}

}  // namespace tutti::comm
