#include "job/root_name.h"

#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "job/remedies.h"
#include "net/socket.h"
#include "process/log.h"
#include "process/private_file.h"
#include "process/user_folder.h"

namespace tutti::control {
namespace {

constexpr std::string_view kStart = "tutti-root-";
constexpr size_t kDigits = 32;

std::string drawName() { return fmt::format("{}{:016x}{:016x}", kStart, randomNumber(), randomNumber()); }

bool isDrawn(std::string_view name) noexcept {
  return name.size() == kStart.size() + kDigits && name.starts_with(kStart) &&
         name.find_first_not_of("0123456789abcdef", kStart.size()) == name.npos;
}

std::optional<std::string> readName(int folder, const std::string& file) {
  const UniqueFd fd = openUserFile(folder, file);
  std::array<char, kStart.size() + kDigits + 1> text;  // one more, by which a longer one shows
  const ssize_t bytes = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  const std::string_view name(text.data(), bytes > 0 ? static_cast<size_t>(bytes) : 0);
  return isDrawn(name) ? std::optional<std::string>(name) : std::nullopt;
}

// Under its name it is there as a whole or not at all. 0, or an errno value.
int put(int folder, const std::string& file, const std::string& name) {
  const std::string draft = fmt::format(".{}.{:016x}", file, randomNumber());
  if (const int error = writePrivateFile(folder, draft, name)) return error;
  if (::renameat(folder, draft.c_str(), folder, file.c_str()) == 0) return 0;
  const int error = errno;
  ::unlinkat(folder, draft.c_str(), 0);
  return error;
}

void requireNobodyAt(const std::string& name) {
  const auto holder = holderOf(name);
  if (!looksLikeThisUser(holder)) return;
  throw Error(ErrorCode::kSystem, fmt::format("cannot wait for the other ranks: process {} does, at the Unix socket "
                                              "@{}. {}",
                                              holder->pid, name, kGiveEachAJob));
}

}  // namespace

std::string rootUnixName(uint64_t job) { return fmt::format("{}{:016x}", kStart, job); }

std::optional<std::string> rootNameIn(const std::string& folder, uint64_t job) {
  if (folder.empty()) return std::nullopt;
  const UniqueFd fd = openUserFolder(folder);
  return fd ? readName(fd.get(), rootUnixName(job)) : std::nullopt;
}

RootName::RootName(std::string folder, uint64_t job) : folder_(std::move(folder)), file_(rootUnixName(job)) {
  if (folder_.empty()) return;
  const UniqueFd fd = openUserFolder(folder_);
  if (!fd) return;
  if (const auto other = readName(fd.get(), file_)) requireNobodyAt(*other);
  text_ = drawName();
  if (const int error = put(fd.get(), file_, text_)) {
    log::info("no name for the other ranks can be left in {}: {}", folder_, errnoText(error));
    text_.clear();
  }
}

void RootName::withdraw() noexcept try {
  if (text_.empty()) return;
  const UniqueFd fd = openUserFolder(folder_);
  if (fd && readName(fd.get(), file_) == text_) ::unlinkat(fd.get(), file_.c_str(), 0);
  text_.clear();
} catch (const std::exception&) {  // it stays, as a killed root's does, and leads nowhere
}

}  // namespace tutti::control
