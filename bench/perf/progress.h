// One line on the terminal that says what is being done, how much is left of it, and vanishes.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/options.h"

namespace tutti::perf {

// What the lines of one table cost, beside one another: a share for the call, and its bytes.
std::vector<double> linesOf(const Options& options);

// "12 s", "3 min", "2 h": of what is only guessed.
std::string roughly(double seconds);

// How far a run has come. Plain arithmetic: the time is told to it.
class Estimate {
 public:
  // `lines` are run again for each of `tables` kinds, `cycles` times; 0 cycles: without end.
  void expect(std::vector<double> lines, size_t tables, int cycles);
  void count();
  // "line 3 of 28"; with an idea of the speed, "line 3 of 28, about 12 s left".
  std::string text(double secondsSoFar) const;

 private:
  std::vector<double> lines_;
  uint64_t total_ = 0, done_ = 0;  // lines; no total: without end
  double table_ = 0, whole_ = 0, spent_ = 0;
};

// Writes to standard error. One thread.
class Progress {
 public:
  // `wanted`: also where standard error is no terminal, in lines of their own; or never. Unless told: to terminals.
  Progress(bool speaks, std::optional<bool> wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void expect(std::vector<double> lines, size_t tables, int cycles);
  void count() { estimate_.count(); }
  // Replaces the line; calls that come too fast for the eye are left out.
  void show(const std::string& what);
  // Takes the line away; call it before printing anything.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, enabled_, visible_ = false;
  Estimate estimate_;
  Clock::time_point start_ = Clock::now(), last_{};
};

}  // namespace tutti::perf
