#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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

spdlog::logger& logger() {
  // Never destroyed: threads of the host program may log while static objects go away.
  static auto* const instance = [] {
    auto* made = new spdlog::logger("tutti", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("tutti %v");
    made->set_level(spdlog::level::from_str(settings::text("TUTTI_DEBUG", "warn")));
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
