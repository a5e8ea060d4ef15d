#include "settings/settings.h"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/error.h"

namespace tutti::settings {
namespace {

int64_t parse(const char* name, const std::string& text, int64_t low, int64_t high) {
  int64_t parsed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, parsed);
  if (failure != std::errc() || stop != end || parsed < low || parsed > high)
    throw Error(ErrorCode::kInvalidArgument,
                high - low == 1 ? fmt::format("{}={}: expected {} or {}", name, text, low, high)
                                : fmt::format("{}={}: expected a whole number from {} to {}", name, text, low, high));
  return parsed;
}

const Setting& rowOf(Name name) {
  const Setting* row = findSetting(name.text());
  if (row == nullptr) throw Error(ErrorCode::kInternal, fmt::format("{} is no setting of tutti's", name.text()));
  return *row;
}

SettingsFiles namedFiles() {
  const auto value = [](const char* name) {
    const char* const text = ::secure_getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  return {value("TUTTI_CONF_FILE"), value("HOME")};
}

}  // namespace

// Snapshots are never freed: others may still read the one before, and there are as many as a program names files. A
// program with privileges that its caller lacks reads none.
const FileSettings& fileSettings() {
  struct Snapshot {
    SettingsFiles files;
    FileSettings settings;
    const Snapshot* before = nullptr;  // out of use, but no leak
  };
  static constinit std::atomic<const Snapshot*> current{nullptr};
  const SettingsFiles files = namedFiles();
  const Snapshot* now = current.load(std::memory_order_acquire);  // pairs with the exchange below
  if (now != nullptr && now->files == files) return now->settings;
  auto fresh = std::make_unique<Snapshot>(files, ::getauxval(AT_SECURE) != 0 ? FileSettings() : readSettings(files));
  fresh->before = now;
  if (current.compare_exchange_strong(now, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->settings;
  return now->settings;
}

void checkSettingsFile() {
  if (const std::string& refusal = fileSettings().refusal; !refusal.empty())
    throw Error(ErrorCode::kInvalidArgument, fmt::format("TUTTI_CONF_FILE: {}", refusal));
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::optional<std::string> Environment::lookUp(const char* name) const {
  const auto in = [name](const Values& values) {
    const auto at = values.find(name);
    return at == values.end() ? std::string() : at->second;
  };
  const char* const own = values_ ? nullptr : ::secure_getenv(name);
  const bool fromFiles = !values_ && own == nullptr && std::string_view(name).starts_with(kPrefix);
  const std::string value = own         ? std::string(own)
                            : values_   ? in(*values_)
                            : fromFiles ? in(fileSettings().values)
                                        : "";
  if (value.empty()) return std::nullopt;
  return value;
}

std::optional<int64_t> Environment::number(Name name, int64_t low, int64_t high) const {
  const auto value = find(name);
  if (!value) return std::nullopt;
  return parse(name.text(), *value, low, high);
}

std::string Environment::text(Name name) const { return find(name).value_or(rowOf(name).fallback); }

int64_t Environment::number(Name name) const {
  const Setting& row = rowOf(name);
  return parse(name.text(), find(name).value_or(row.fallback), row.low, row.high);
}

std::vector<std::string> Environment::names(std::string_view prefix) const {
  std::vector<std::string> found;
  const auto add = [&](std::string_view name) {
    if (name.starts_with(prefix)) found.emplace_back(name);
  };
  if (values_) {
    for (const auto& [name, value] : *values_) add(name);
  } else if (::getauxval(AT_SECURE) == 0) {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      add(text.substr(0, text.find('=')));
    }
    for (const auto& [name, value] : fileSettings().values)
      if (::getenv(name.c_str()) == nullptr) add(name);
  }
  return found;
}

}  // namespace tutti::settings
