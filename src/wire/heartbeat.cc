#include "wire/heartbeat.h"

#include <algorithm>

namespace tutti::control {
namespace {

int64_t toMs(Reactor::Clock::duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

}  // namespace

// Four signs in a heartbeat: one that is late does not look like silence.
Heartbeat::Clock::duration Heartbeat::period() const noexcept {
  return std::max<Clock::duration>(std::chrono::milliseconds(1), heartbeat_ / 4);
}

bool Heartbeat::stalled(Clock::time_point now) const noexcept { return running_ && now - lastTick_ > heartbeat_ / 2; }

void Heartbeat::watch(std::shared_ptr<Line> line, Silent silent) {
  if (heartbeat_.count() <= 0) return;
  // The text about silence is the better one: the system comes second, and frees what leaving ranks left unfinished.
  line->limitSilence(2 * heartbeat_);
  watched_.push_back({std::move(line), std::move(silent)});
  if (running_) return;
  lastTick_ = Clock::now();
  goOn();
}

// Without memory for a next tick, the next line that is to be watched begins anew.
void Heartbeat::goOn() {
  running_ = false;
  reactor_.after(period(), [this] { tick(); });
  running_ = true;
}

// The next one stands before anything else: what fails in this one ends only this one.
void Heartbeat::tick() {
  const auto now = Clock::now();
  if (stalled(now)) freshStart_ = now;
  lastTick_ = now;
  goOn();
  std::erase_if(watched_, [](const Watched& one) { return !one.line->takesFrames(); });
  // Who is told of a silence may watch other lines, behind these.
  for (const Watched& one : watched_)
    if (one.line->takesFrames()) lookAt(one, now);
}

void Heartbeat::lookAt(const Watched& one, Clock::time_point now) {
  const auto silence = now - std::max(one.line->heard(), freshStart_);
  if (silence >= heartbeat_)
    return one.silent(
        fmt::format("was silent for {} ms: its process is stopped, its host is down or its network is cut "
                    "(TUTTI_HEARTBEAT_MS says how long silence may last)",
                    toMs(silence)));
  // What is still queued is a sign of life by itself, once the socket takes it.
  if (one.line->drained() && now - one.line->said() >= period() / 2) one.line->send(Kind::kAlive, Bytes{});
}

std::string Heartbeat::stallNote() const {
  const auto now = Clock::now();
  if (!stalled(now)) return {};
  return fmt::format(" (this rank itself was stopped or starved for {} ms: the others may have given it up)",
                     toMs(now - lastTick_));
}

}  // namespace tutti::control
