// A length-checked writer and reader of little-endian records: control messages, cards, unique ids.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace tutti {

using Bytes = std::vector<std::byte>;

class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> Writer& value(T v) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof v);
    std::memcpy(bytes_.data() + at, &v, sizeof v);
    return *this;
  }
  // A block of up to 4 GiB with its length in front.
  Writer& block(std::span<const std::byte> data) {
    value(static_cast<uint32_t>(data.size()));
    bytes_.insert(bytes_.end(), data.begin(), data.end());
    return *this;
  }
  Writer& text(std::string_view s) { return block(std::as_bytes(std::span(s))); }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

// Throws Error(kRemote) when the bytes end too early: they came from outside.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> T value() {
    T v;
    std::memcpy(&v, next(sizeof v).data(), sizeof v);
    return v;
  }
  std::span<const std::byte> block() { return next(value<uint32_t>()); }
  std::string text() {
    const auto b = block();
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  bool empty() const noexcept { return rest_.empty(); }

 private:
  std::span<const std::byte> next(size_t n) {
    if (n > rest_.size())
      throw Error(ErrorCode::kRemote,
                  fmt::format("a record ends early: {} more bytes were expected, {} are left", n, rest_.size()));
    const auto taken = rest_.first(n);
    rest_ = rest_.subspan(n);
    return taken;
  }
  std::span<const std::byte> rest_;
};

}  // namespace tutti
