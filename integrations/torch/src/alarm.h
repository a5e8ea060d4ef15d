// What is to happen at a time that nobody is waiting for: the end of a receive of which only the future is asked.
#pragma once
#include <chrono>
#include <functional>

namespace tutti_torch {

using TimePoint = std::chrono::steady_clock::time_point;

// Calls `ring` at `when`, or soon after, on a thread that all alarms of the process share: `ring` must not wait for
// anything. There is no taking it back. Throws DistBackendError where the system refuses the thread. Any thread.
void setAlarm(TimePoint when, std::function<void()> ring);

}  // namespace tutti_torch
