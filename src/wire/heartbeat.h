// Signs of life: says on each of its lines, when nothing else was said for a while, that this rank is there, and
// notices lines on which nothing comes. A process that was stopped or got no processor itself is no judge of the
// others: they may have spoken all the time. It notices that from its own late ticks, and gives them a fresh start.
#pragma once
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "wire/line.h"

namespace tutti::control {

class Heartbeat {
 public:
  using Clock = Reactor::Clock;
  // `how`: "was silent for 2000 ms: ...", to stand behind a name. The line is still open; who is told closes it.
  using Silent = std::function<void(const std::string& how)>;

  // A heartbeat of zero: no signs are given, and silence is no failure.
  Heartbeat(Reactor& reactor, std::chrono::milliseconds heartbeat) : reactor_(reactor), heartbeat_(heartbeat) {}

  // Watches the line for as long as it takes frames.
  void watch(std::shared_ptr<Line> line, Silent silent);
  // "(this rank itself was stopped or starved for 3100 ms: ...)" if that is so just now, or nothing.
  std::string stallNote() const;
  std::chrono::milliseconds heartbeat() const noexcept { return heartbeat_; }

 private:
  struct Watched {
    std::shared_ptr<Line> line;
    Silent silent;
  };
  Clock::duration period() const noexcept;
  bool stalled(Clock::time_point now) const noexcept;
  void goOn();
  void tick();
  void lookAt(const Watched& one, Clock::time_point now);

  Reactor& reactor_;
  std::chrono::milliseconds heartbeat_;
  bool running_ = false;
  Clock::time_point lastTick_, freshStart_;
  std::list<Watched> watched_;
};

}  // namespace tutti::control
