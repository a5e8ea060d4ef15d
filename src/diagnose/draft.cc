#include "diagnose/draft.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
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

}  // namespace

std::string draftOf(const std::string& path) {
  return fmt::format("{}.{}.{}.{:016x}{}", path, home(), ::getpid(), randomNumber(), kEnd);
}

void removeOrphans(const std::string& folder) noexcept try {
  const std::string here = home();
  if (here == kSomewhere) return;  // so may others be, on any host
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder)) {
    const auto writer = writerOf(entry.path().filename().string(), here);
    if (!writer || !hasEnded(*writer) || !entry.is_regular_file()) continue;
    std::error_code ignored;
    std::filesystem::remove(entry.path(), ignored);
  }
} catch (const std::exception&) {  // the record that is to be written matters more
}

}  // namespace tutti::comm
