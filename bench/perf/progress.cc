#include "perf/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace tutti::perf {
namespace {

constexpr double kCallBytes = 64 << 10;  // a call costs about what so many bytes do
constexpr size_t kMostLines = 100'000;   // of a table; longer ones are told without an end
constexpr double kTooEarlySeconds = 2;   // to guess from
constexpr auto kBlink = std::chrono::milliseconds(50), kLineEach = std::chrono::milliseconds(1000);

}  // namespace

std::vector<double> linesOf(const Options& options) {
  std::vector<double> lines;
  for (std::optional<size_t> bytes = options.minBytes; bytes; bytes = options.nextSize(*bytes)) {
    if (lines.size() == kMostLines) return {};
    lines.push_back(kCallBytes + static_cast<double>(*bytes));
  }
  return lines;
}

std::string roughly(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.0f} h", seconds / 3600);
}

void Estimate::expect(std::vector<double> lines, size_t tables, int cycles) {
  lines_ = std::move(lines);
  table_ = 0;
  for (const double line : lines_) table_ += line;
  total_ = uint64_t{lines_.size()} * tables * static_cast<uint64_t>(cycles);
  whole_ = table_ * static_cast<double>(tables) * cycles;
}

void Estimate::count() {
  if (!lines_.empty()) spent_ += lines_[done_ % lines_.size()];
  ++done_;
}

std::string Estimate::text(double secondsSoFar) const {
  std::string text = fmt::format("line {}", done_ + 1);
  if (total_ == 0) return text;
  text += fmt::format(" of {}", total_);
  if (spent_ > 0 && secondsSoFar >= kTooEarlySeconds)
    text += fmt::format(", about {} left", roughly(secondsSoFar / spent_ * (whole_ - spent_)));
  return text;
}

Progress::Progress(bool speaks, std::optional<bool> wanted)
    : terminal_(isatty(STDERR_FILENO) == 1), enabled_(speaks && wanted.value_or(terminal_)) {}

void Progress::expect(std::vector<double> lines, size_t tables, int cycles) {
  estimate_.expect(std::move(lines), tables, cycles);
  start_ = Clock::now();
}

void Progress::show(const std::string& what) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? kBlink : kLineEach)) return;
  last_ = now;
  visible_ = terminal_;
  const std::string where = estimate_.text(std::chrono::duration<double>(now - start_).count());
  std::fprintf(stderr, terminal_ ? "\r\033[K%s: %s ..." : "%s: %s\n", where.c_str(), what.c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!visible_) return;
  visible_ = false;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

}  // namespace tutti::perf
