// Environment variables: the only place that reads them. Values are read when a context or communicator is made and
// passed down as plain data, never looked up on a path that runs per call.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings/settings_file.h"
#include "settings/settings_table.h"

namespace tutti::settings {

// A variable's name. A TUTTI_* name that has no row in the table does not compile.
class Name {
 public:
  constexpr Name() = default;
  consteval Name(const char* text) : text_(text) {
    if (std::string_view(text).starts_with(kPrefix) && rowNumber(text) == kTable.size())
      throw "this TUTTI_* variable has no row in settings/settings_table.h";
  }
  constexpr const char* text() const noexcept { return text_; }
  constexpr explicit operator bool() const noexcept { return *text_ != '\0'; }
  friend bool operator==(const Name& a, const Name& b) { return std::string_view(a.text_) == b.text_; }

 private:
  const char* text_ = "";
};

// The process's own variables, or those of a test. A variable that is empty counts as not set, and so do all where the
// process has privileges that whoever started it has not (set-user-id programs): they are of that user's choosing.
// What is not in the process's environment may be in a file of settings (settings_file.h).
class Environment {
 public:
  using Values = std::map<std::string, std::string>;
  Environment() = default;
  explicit Environment(Values values) : values_(std::move(values)) {}

  std::optional<std::string> find(Name name) const { return lookUp(name.text()); }
  std::optional<std::string> valueOf(const Setting& setting) const { return lookUp(setting.name); }
  // Of a foreign variable: the number when it is set. Throws Error(kInvalidArgument) that names variable, value and
  // range when it is no whole number within [low, high].
  std::optional<int64_t> number(Name name, int64_t low, int64_t high) const;

  // Of a setting: the value, or the default of its row. Throw Error(kInvalidArgument) for a value out of range.
  std::string text(Name name) const;
  int64_t number(Name name) const;
  std::chrono::milliseconds milliseconds(Name name) const { return std::chrono::milliseconds(number(name)); }
  bool isOn(Name name) const { return number(name) != 0; }

  // The variables whose names begin with `prefix`.
  std::vector<std::string> names(std::string_view prefix) const;

 private:
  std::optional<std::string> lookUp(const char* name) const;
  std::optional<Values> values_;  // none: the process's
};

// What files say, of this process: read when it is first asked for, and again only when TUTTI_CONF_FILE or HOME has
// changed since. Empty in a process with privileges that whoever started it has not. Any thread.
const FileSettings& fileSettings();
// Throws Error(kInvalidArgument) when TUTTI_CONF_FILE names a file that cannot be read or is not to be trusted; what is
// wrong with the others is a warning.
void checkSettingsFile();

// For values that count in any case of letters.
std::string lowered(std::string text);

// The same of the process's environment.
inline std::optional<std::string> find(Name name) { return Environment().find(name); }
inline std::string text(Name name) { return Environment().text(name); }
inline int64_t number(Name name) { return Environment().number(name); }
inline std::chrono::milliseconds milliseconds(Name name) { return Environment().milliseconds(name); }
inline bool isOn(Name name) { return Environment().isOn(name); }

}  // namespace tutti::settings
