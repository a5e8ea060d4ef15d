// Log lines, on standard error or to the end of TUTTI_DEBUG_FILE: "tutti [rank] level text". TUTTI_DEBUG=warn
// (default), version, info, debug, trace, off sets how much, in any case of letters.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::log {

// kVersion: as kWarn, and the one line that says which tutti this is.
enum class Level { kDebug, kInfo, kVersion, kWarn, kOff };

// What TUTTI_DEBUG's value means; none for a name that it does not know.
std::optional<Level> levelByName(std::string name);

// A file's name with %h for the host's, %p for the number of the process and %% for %.
std::string filledIn(std::string_view pattern);

bool enabled(Level level) noexcept;  // false too while there is no memory for what all lines share
void write(Level level, const std::string& text) noexcept;
// Says which rank this thread works for, so that lines can be told apart; -1 for none.
void setThreadRank(int rank) noexcept;

// The lines below fail no call that they speak of, not even for lack of memory: without it they are left out.
template <class... Args>
void line(Level level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    if (enabled(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::exception&) {  // no memory for the text
  }
}

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) noexcept {
  line(Level::kWarn, format, std::forward<Args>(args)...);
}

}  // namespace tutti::log
