// Log lines, on standard error: "tutti [rank] level text". TUTTI_DEBUG=warn (default), info, debug, off sets how much,
// in any case of letters.
#pragma once
#include <fmt/format.h>

#include <string>

namespace tutti::log {

enum class Level { kDebug, kInfo, kWarn, kOff };

bool enabled(Level level) noexcept;
void write(Level level, const std::string& text) noexcept;
// Says which rank this thread works for, so that lines can be told apart; -1 for none.
void setThreadRank(int rank) noexcept;

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn)) write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tutti::log
