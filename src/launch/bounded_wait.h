// How long a rank on its way to the others waits.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "base/deadline.h"
#include "base/deadline_names.h"
#include "base/error.h"

namespace tutti::control {

// Whether the caller has lost interest; asked now and then during a wait, on the thread that waits. May be empty.
using Cancelled = std::function<bool()>;

// Until a deadline, or until the caller has lost interest, which is noticed within kStep.
class BoundedWait {
 public:
  BoundedWait(Deadline deadline, Cancelled cancelled = {}, int rank = 0)
      : deadline_(deadline), cancelled_(std::move(cancelled)), rank_(rank) {}

  Deadline deadline() const noexcept { return deadline_; }
  // As texts call it.
  std::string name() const { return fmt::format("the deadline of rank {}, {}", rank_, kJoinDeadline); }
  // Throws Error(kRemote) once the caller has lost interest.
  void check() const {
    if (cancelled_ && cancelled_())
      throw Error(ErrorCode::kRemote, fmt::format("rank {} stopped joining: it was aborted", rank_));
  }
  // Whether the deadline has passed. Throws as check() does.
  bool over() const {
    check();
    return deadline_.passed();
  }
  // How long to sleep before the next look at it.
  std::chrono::milliseconds step() const { return std::min(kStep, deadline_.left()); }
  // Sleeps for so long, or until the deadline. Throws as check() does.
  void sleep(std::chrono::milliseconds span) const {
    for (const Deadline end = Deadline::in(span); !over() && !end.passed();)
      std::this_thread::sleep_for(std::min(step(), end.left()) + std::chrono::milliseconds(1));
  }

 private:
  static constexpr std::chrono::milliseconds kStep{50};
  Deadline deadline_;
  Cancelled cancelled_;
  int rank_;
};

}  // namespace tutti::control
