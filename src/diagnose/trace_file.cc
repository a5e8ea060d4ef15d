#include "diagnose/trace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "diagnose/json_writer.h"
#include "net/network.h"
#include "process/log.h"
#include "process/process_object.h"
#include "process/thread.h"

namespace tutti::comm {
namespace {

constexpr size_t kKept = size_t{1} << 16;    // bytes
constexpr int64_t kKeptForNs = 200'000'000;  // a process that is killed loses so much
// Moments are told since the beginning of 2026, the same on all hosts: readers take them for doubles, which are too
// coarse for microseconds since 1970.
constexpr int64_t kBeginningNs = int64_t{1'767'225'600} * 1'000'000'000;

void flushAtTheEnd() noexcept try {
  TraceFile::instance().flush();
} catch (const std::exception&) {  // no memory: the process ends in any case
}

// As the library's threads are ended: see process/background_threads.cc.
[[maybe_unused]] const int kRegistered = std::atexit(flushAtTheEnd);

// Not for ever: whoever holds the lock may have been stopped.
bool lockFor(std::chrono::milliseconds atMost, int fd) noexcept {
  constexpr std::chrono::milliseconds kPause(1);
  const auto until = std::chrono::steady_clock::now() + atMost;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// Whoever comes first begins the array: another may come at the same time. 0 or an errno value.
int beginArray(int fd) noexcept {
  const bool locked = lockFor(std::chrono::milliseconds(200), fd);
  struct stat file {};
  const bool fails = ::fstat(fd, &file) != 0 || (file.st_size == 0 && ::write(fd, "[\n", 2) != 2);
  const int error = fails ? errno : 0;
  if (locked) ::flock(fd, LOCK_UN);
  return error;
}

// A descriptor, or an errno value less than 0.
int openShared(const std::string& path) noexcept {
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) return -errno;
  struct stat file {};
  int error = ::fstat(fd, &file) != 0 ? errno : 0;
  if (error == 0) error = S_ISREG(file.st_mode) ? beginArray(fd) : EINVAL;
  if (error == 0) return fd;
  ::close(fd);
  return -error;
}

}  // namespace

TraceFile& TraceFile::instance() { return ofThisProcess<TraceFile>(); }

void TraceFile::open(const std::string& pattern) {
  const std::lock_guard lock(mutex_);
  if (!path_.empty()) return;
  path_ = log::filledIn(pattern);
  const FileSignalHeld held;
  const int opened = openShared(path_);
  if (opened < 0) return refuse(-opened);
  fd_ = opened;
}

void TraceFile::refuse(int errnoValue) noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  kept_.clear();
  try {
    const std::string why = errnoValue == EINVAL ? "it is no regular file" : errnoText(errnoValue);
    log::warn("TUTTI_TRACE={}: {}; nothing is traced there from here on", path_, why);
  } catch (const std::exception&) {  // no memory to say so
  }
}

int TraceFile::newTrack(std::string_view name) {
  const std::lock_guard lock(mutex_);
  ends_.push_back(0);
  const int track = static_cast<int>(ends_.size());
  describe(track, name);
  return track;
}

void TraceFile::describe(int track, std::string_view name) {
  const auto meta = [](const char* what, int at, std::string_view text) {
    return fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}})", ::getpid(), at, what,
                       jsonText(text, true));
  };
  if (!std::exchange(named_, true)) line(meta("process_name", 0, fmt::format("{}, pid {}", hostName(), ::getpid())));
  line(meta("thread_name", track, name));
}

void TraceFile::add(int track, std::string_view name, int64_t beginNs, int64_t endNs,
                    std::string_view arguments) noexcept try {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  // What turns ticks into time learns as it goes: slices that follow each other could overlap by some nanoseconds.
  int64_t& last = ends_[static_cast<size_t>(track) - 1];
  beginNs = std::max(beginNs, last);
  endNs = last = std::max(beginNs, endNs);
  const int64_t since = std::max<int64_t>(0, beginNs - kBeginningNs);
  line(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{}.{:03},"dur":{:.3f},"name":"{}","args":{{{}}}}})", ::getpid(),
                   track, since / 1000, since % 1000, static_cast<double>(endNs - beginNs) / 1000, name, arguments));
  if (kept_.size() < kKept && endNs - written_ < kKeptForNs) return;
  written_ = endNs;
  write();
} catch (const std::exception&) {  // no memory: a gap in the picture
}

void TraceFile::line(const std::string& event) {
  if (fd_ >= 0) kept_ += event + ",\n";  // at once: without memory there is no half of a line
}

void TraceFile::flush() noexcept {
  const std::lock_guard lock(mutex_);
  write();
}

// Needs the mutex. Whole lines in one write, so that processes do not mix theirs.
void TraceFile::write() noexcept {
  if (fd_ < 0 || kept_.empty()) return;
  const FileSignalHeld held;
  const ssize_t wrote = ::write(fd_, kept_.data(), kept_.size());
  if (wrote != static_cast<ssize_t>(kept_.size())) return refuse(wrote < 0 ? errno : ENOSPC);
  kept_.clear();
}

}  // namespace tutti::comm
