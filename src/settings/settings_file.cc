#include "settings/settings_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "settings/settings_table.h"

namespace tutti::settings {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr const char* kOfTheHost = "/etc/tutti.conf";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\f\v";
  const size_t begin = text.find_first_not_of(kWhite);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kWhite) - begin + 1);
}

// Why a line counts for nothing; empty when it does.
std::string objectionTo(std::string_view name) {
  if (!name.starts_with(kPrefix)) return "expected TUTTI_NAME=VALUE, or # before what is no setting";
  const Setting* const row = findSetting(name);
  if (row != nullptr && row->type == Type::kSecret)
    return fmt::format("{} is a secret, and does not belong into a file of settings: see TUTTI_SECRET_FILE", name);
  constexpr std::string_view kOfOne[] = {"TUTTI_RANK",       "TUTTI_SIZE", "TUTTI_LOCAL_RANK",
                                         "TUTTI_LOCAL_SIZE", "TUTTI_ROOT", "TUTTI_ID_FILE"};
  if (std::ranges::find(kOfOne, name) != std::end(kOfOne))
    return fmt::format("{} is for a process or a job, and not for a file of settings", name);
  if (name == "TUTTI_CONF_FILE") return "a file of settings cannot name another one";
  return "";
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

// Why nothing is read from it: whoever may write to it decides with whom this process joins, and where it writes to.
std::string objectionTo(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "is no regular file";
  if (info.st_uid != ::geteuid() && info.st_uid != 0) return "belongs to another user, who is not root";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "may be written to by others: chmod go-w";
  if (static_cast<size_t>(info.st_size) > kMostBytes) return fmt::format("is longer than {} bytes", kMostBytes);
  return "";
}

// What is wrong; empty when nothing is.
std::string readText(const std::string& path, std::string& text) {
  const Descriptor file(path);
  struct stat info;
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return fmt::format("cannot be read: {}", std::strerror(errno));
  if (std::string objection = objectionTo(info); !objection.empty()) return objection;
  text.resize(kMostBytes);
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < text.size(); length += static_cast<size_t>(std::max<ssize_t>(got, 0)))
    got = ::read(file.get(), &text[length], text.size() - length);
  text.resize(length);
  return "";
}

// What is wrong with it is a problem, but not that it is not there where nobody has asked for it.
void addFile(const std::string& path, bool asked, FileSettings& all) {
  if (!asked && ::access(path.c_str(), F_OK) != 0) return;
  std::string text;
  const std::string problem = readText(path, text);
  if (problem.empty()) return all.read.push_back(path), addSettings(text, path, all);
  std::string told = fmt::format("{} {}", path, problem);
  if (asked)
    all.refusal = std::move(told);
  else
    all.problems.push_back(std::move(told));
}

}  // namespace

void addSettings(std::string_view text, const std::string& path, FileSettings& all) {
  for (size_t at = 0, number = 1; at <= text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line.front() == '#') continue;
    const size_t equals = std::min(line.find('='), line.size());
    const std::string name(trimmed(line.substr(0, equals)));
    std::string problem = equals == line.size() ? "expected TUTTI_NAME=VALUE" : objectionTo(name);
    const std::string value(equals == line.size() ? "" : trimmed(line.substr(equals + 1)));
    if (value.find('\0') != std::string::npos) problem = "a value has no zero byte";
    if (problem.empty())
      all.values.emplace(name, value);
    else
      all.problems.push_back(fmt::format("{}, line {}: {}", path, number, problem));
  }
}

FileSettings readSettings(const SettingsFiles& files) {
  FileSettings all;
  if (!files.asked.empty())
    addFile(files.asked, true, all);
  else if (!files.home.empty())
    addFile(files.home + "/.tutti.conf", false, all);
  addFile(kOfTheHost, false, all);
  return all;
}

}  // namespace tutti::settings
