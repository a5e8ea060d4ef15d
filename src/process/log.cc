#include "process/log.h"

#include <fcntl.h>
#include <unistd.h>

#undef SPDLOG_HEADER_ONLY  // the build says it for versions of spdlog that do not say it themselves
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/plain_text.h"
#include "process/process_object.h"
#include "process/thread.h"
#include "settings/settings.h"

namespace tutti::log {
namespace {

thread_local int threadRank = -1;

spdlog::level::level_enum toSpdlog(Level level) noexcept {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kVersion:  // a level of tutti's own: spdlog sees the next one
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

using Sink = spdlog::sinks::stdout_sink_base<spdlog::details::console_nullmutex>;

// Appended to: ranks may share it, and a line is one write. Never waits for the reader of a pipe. Never closed.
FILE* openFile(const std::string& path, std::string& refusal) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  FILE* const file = fd < 0 ? nullptr : ::fdopen(fd, "a");
  if (file != nullptr) return file;
  refusal = fmt::format("TUTTI_DEBUG_FILE={}: {}; going on with standard error", path, std::strerror(errno));
  if (fd >= 0) ::close(fd);
  return stderr;
}

FILE* openOutput(std::string& path, std::string& refusal) {
  const auto pattern = settings::find("TUTTI_DEBUG_FILE");
  if (!pattern) return stderr;
  path = filledIn(*pattern);
  return openFile(path, refusal);
}

// The mutex is ours and not the sink's, which all programs' sinks share and a child of fork would inherit taken.
struct Output {
  Output() {
    logger.set_pattern("tutti %v");
    logger.set_level(toSpdlog(level));
    if (!refusal.empty()) logger.log(spdlog::level::warn, "warning: {}", refusal);
  }
  // An unknown name must not switch the warnings off.
  const Level level = levelByName(settings::text("TUTTI_DEBUG")).value_or(Level::kWarn);
  std::mutex mutex;           // guards what follows
  std::string path, refusal;  // of the file that was asked for
  FILE* const file = openOutput(path, refusal);
  spdlog::logger logger{"tutti", std::make_shared<Sink>(file)};
  bool loses = false;  // lines, which has been told
};

Output& output() { return ofThisProcess<Output>(); }

// After a line, whose errno it tells; once, and where somebody may see it.
void tellLoss(Output& out) {
  const int error = errno;
  if (out.loses || out.file == stderr || std::ferror(out.file) == 0) return;
  out.loses = true;
  fmt::print(stderr, "tutti warning: TUTTI_DEBUG_FILE={}: {}; lines are missing there\n", out.path,
             std::strerror(error));
}

std::string_view nameOf(Level level) noexcept {
  if (level == Level::kVersion) return "version";
  const auto name = spdlog::level::to_string_view(toSpdlog(level));
  return {name.data(), name.size()};
}

}  // namespace

std::string filledIn(std::string_view pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    char host[256] = {};
    if (next == 'h' && ::gethostname(host, sizeof host - 1) == 0)
      path += host;
    else if (next == 'p')
      path += std::to_string(::getpid());
    else
      path += pattern[i];
    if (next == 'h' || next == 'p' || next == '%') ++i;
  }
  return path;
}

// INFO is info, as other libraries' users are used to; and so that they find what they look for, their names are known.
std::optional<Level> levelByName(std::string name) {
  name = settings::lowered(std::move(name));
  if (name == "trace" || name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "version") return Level::kVersion;
  if (name == "warn") return Level::kWarn;
  if (name == "off") return Level::kOff;
  return std::nullopt;
}

bool enabled(Level level) noexcept {
  try {
    return level >= output().level;
  } catch (const std::exception&) {  // made by the first line, for which there is no memory
    return false;
  }
}

// What a line says may come from outside, where not all that comes is taken for text first: no line steers the
// terminal.
void write(Level level, const std::string& said) noexcept {
  try {
    constexpr size_t kMostBytes = size_t{1} << 20;
    const std::string text = plainText(said, kMostBytes, '\n');
    Output& out = output();
    const FileSignalHeld held;  // standard error may be a file
    const std::lock_guard lock(out.mutex);
    spdlog::logger& logger = out.logger;
    if (threadRank >= 0)
      logger.log(toSpdlog(level), "[rank {}] {}: {}", threadRank, nameOf(level), text);
    else
      logger.log(toSpdlog(level), "{}: {}", nameOf(level), text);
    tellLoss(out);
  } catch (...) {  // a line that cannot be written is no reason to fail the call it speaks of
  }
}

void setThreadRank(int rank) noexcept { threadRank = rank; }

}  // namespace tutti::log
