#include "api/process_text.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace tutti::api {

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
