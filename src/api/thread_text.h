// The texts that a thread's calls leave behind. A thread may make calls to its very end - from the destructors of its
// thread_local objects, of pthread_setspecific() and, the main thread, of static objects - and so they have no
// destructors of their own; and a text is told also where there is no memory for it.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

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

}  // namespace tutti::api
