// The texts that errors leave behind: a thread's own, and the process's newest. They are told also where there is no
// memory for them, and to the very end: a thread may make calls from the destructors of its thread_local objects, of
// pthread_setspecific() and, the main thread, of static objects. So they have no destructors of their own.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include "process/fork.h"

namespace tutti::api {

// For thread_local objects only.
class ThreadText {
 public:
  // What memory cannot be had for, or comes when the thread is nearly gone, is cut short.
  void set(std::string_view text) noexcept;
  const char* get() const noexcept { return long_ != nullptr ? long_ : short_.data(); }
  void drop() noexcept;

 private:
  char* long_ = nullptr;  // of its own, for what does not fit below
  std::array<char, 128> short_{};
};

extern thread_local constinit ThreadText threadError;
extern thread_local constinit ThreadText returnedError;  // what tuttiGetLastError's pointer points to

// The newest text of any thread, for a watchdog: what it has not called itself it has no text of. An object of
// namespace scope. Any thread.
class ProcessText {
 public:
  // What memory cannot be had for is cut short.
  void set(std::string_view text) noexcept;
  void copyTo(ThreadText& text) noexcept;

 private:
  fork::Mutex mutex_;     // guards what follows
  char* long_ = nullptr;  // of its own, for what does not fit below
  std::array<char, 128> short_{};
};

extern ProcessText processError;

}  // namespace tutti::api
