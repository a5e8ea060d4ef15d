#include "base/log.h"

#undef SPDLOG_HEADER_ONLY  // the build says it for versions of spdlog that do not say it themselves
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>

#include "base/settings.h"

namespace tutti::log {
namespace {

thread_local int threadRank = -1;

spdlog::level::level_enum toSpdlog(Level level) noexcept {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

// INFO is info, as other libraries' users are used to. An unknown name must not switch the warnings off.
void chooseLevel(spdlog::logger& logger, std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* known : {"debug", "info", "warn", "off"}) {
    if (name == known) return logger.set_level(spdlog::level::from_str(name));
  }
  logger.set_level(spdlog::level::warn);
  logger.warn("TUTTI_DEBUG={}: choose one of debug, info, warn, off", name);
}

spdlog::logger& logger() {
  // Never destroyed: threads of the host program may log while static objects go away.
  static auto* const instance = [] {
    auto* made = new spdlog::logger("tutti", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("tutti %v");
    chooseLevel(*made, settings::text("TUTTI_DEBUG"));
    return made;
  }();
  return *instance;
}

}  // namespace

bool enabled(Level level) noexcept { return logger().should_log(toSpdlog(level)); }

void write(Level level, const std::string& text) noexcept {
  try {
    const auto name = spdlog::level::to_string_view(toSpdlog(level));
    if (threadRank >= 0)
      logger().log(toSpdlog(level), "[rank {}] {}: {}", threadRank, fmt::string_view(name.data(), name.size()), text);
    else
      logger().log(toSpdlog(level), "{}: {}", fmt::string_view(name.data(), name.size()), text);
  } catch (...) {  // a line that cannot be written is no reason to fail the call it speaks of
  }
}

void setThreadRank(int rank) noexcept { threadRank = rank; }

}  // namespace tutti::log
