// Whether a lack of file descriptors lasts: that of a moment, while others of this process still have theirs open, is
// waited out; one that stays is a failure, long before any deadline.
#pragma once
#include <cerrno>
#include <chrono>
#include <optional>

namespace tutti {

class Lack {
 public:
  static bool isOne(int error) noexcept { return error == EMFILE || error == ENFILE; }
  void begins() noexcept {
    if (!since_) since_ = Clock::now(), times_ = 0;
    ++times_;
  }
  void ends() noexcept { since_.reset(); }
  // Seen often as well: a process that is stopped in between has not lacked all the while.
  bool lasts() const noexcept { return since_ && times_ >= kOften && Clock::now() - *since_ >= kLong; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kLong{1};
  static constexpr int kOften = 5;
  std::optional<Clock::time_point> since_;
  int times_ = 0;
};

}  // namespace tutti
