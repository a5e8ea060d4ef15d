// The newest text of an error of any thread, for a watchdog: what it has not called itself it has no text of. As the
// texts of a thread (api/thread_text.h) it can be told and read to the very end of the process, and without memory.
#pragma once
#include <array>
#include <string_view>

#include "api/thread_text.h"
#include "process/fork.h"

namespace tutti::api {

// An object of namespace scope; it has no destructor. Any thread.
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
