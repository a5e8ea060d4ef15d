// One line on the terminal that says what is being done, and vanishes.
#pragma once
#include <chrono>
#include <string>

namespace tutti::perf {

// Writes to standard error, and only where that is a terminal. One thread.
class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Replaces the line; calls that come too fast for the eye are left out.
  void show(const std::string& text);
  // Takes the line away; call it before printing anything.
  void clear();

 private:
  bool enabled_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace tutti::perf
