#include "detect/sysfs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/trimmed.h"

namespace tutti::detect {
namespace {

constexpr size_t kLongestLine = 4096;  // a file of the kernel's has a page at most

}  // namespace

std::optional<std::string> Sysfs::line(const std::string& path) const {
  std::ifstream file(root_ + path);
  std::string text(kLongestLine, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof()) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  return std::string(trimmed(std::string_view(text).substr(0, text.find('\n'))));
}

std::optional<int64_t> Sysfs::number(const std::string& path) const {
  const auto text = line(path);
  int64_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::string Sysfs::bytes(const std::string& path, size_t most) const {
  std::ifstream file(root_ + path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::vector<std::string> Sysfs::names(const std::string& path) const {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root_ + path, error), end; !error && entry != end;
       entry.increment(error))
    found.push_back(entry->path().filename());
  std::sort(found.begin(), found.end());
  return found;
}

bool Sysfs::has(const std::string& path) const {
  std::error_code error;
  return std::filesystem::exists(root_ + path, error);
}

std::string Sysfs::target(const std::string& path) const {
  std::error_code error;
  return std::filesystem::read_symlink(root_ + path, error);
}

}  // namespace tutti::detect
