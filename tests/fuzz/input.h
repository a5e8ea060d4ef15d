// The bytes that a fuzzer makes up, taken apart. What is not there is zero, so that every input means something.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace tutti::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T take() {
    T value{};
    const auto taken = bytes(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  // At most `n`.
  std::span<const std::byte> bytes(size_t n) {
    const auto taken = rest_.first(std::min(n, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> rest() { return bytes(rest_.size()); }
  std::string text(size_t n = SIZE_MAX) {
    const auto taken = bytes(n);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  bool empty() const noexcept { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// What must hold whatever came in.
inline void require(bool holds, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold\n", file, line);
  std::abort();
}

}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
