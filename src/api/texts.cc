#include "api/texts.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace tutti::api {

thread_local constinit ThreadText threadError;
thread_local constinit ThreadText returnedError;

namespace {

thread_local constinit bool textsDropped = false;  // what is set from now on, nobody would free

struct TextDropper {
  ~TextDropper() {
    textsDropped = true;
    threadError.drop();
    returnedError.drop();
  }
  bool set = false;  // whoever touches it has it destroyed
};
thread_local TextDropper textDropper;

char* roomFor(size_t bytes) noexcept {
  if (textsDropped) return nullptr;
  textDropper.set = true;
  return new (std::nothrow) char[bytes];
}

}  // namespace

void ThreadText::drop() noexcept {
  delete[] long_;
  long_ = nullptr;
}

void ThreadText::set(std::string_view text) noexcept {
  char* const fresh = text.size() < short_.size() ? nullptr : roomFor(text.size() + 1);
  char* const into = fresh != nullptr ? fresh : short_.data();
  const size_t length = fresh != nullptr ? text.size() : std::min(text.size(), short_.size() - 1);
  std::memmove(into, text.data(), length);  // it may be what is here already
  into[length] = '\0';
  drop();
  long_ = fresh;
}

static_assert(std::is_trivially_destructible_v<ProcessText>);
ProcessText processError;

void ProcessText::set(std::string_view text) noexcept {
  char* const fresh = text.size() < short_.size() ? nullptr : new (std::nothrow) char[text.size() + 1];
  char* before = nullptr;
  {
    const std::lock_guard lock(mutex_);
    char* const into = fresh != nullptr ? fresh : short_.data();
    const size_t length = fresh != nullptr ? text.size() : std::min(text.size(), short_.size() - 1);
    std::memcpy(into, text.data(), length);
    into[length] = '\0';
    before = std::exchange(long_, fresh);
  }
  delete[] before;
}

void ProcessText::copyTo(ThreadText& text) noexcept {
  const std::lock_guard lock(mutex_);
  text.set(long_ != nullptr ? long_ : short_.data());
}

}  // namespace tutti::api
