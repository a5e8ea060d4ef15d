// A length-checked writer and reader of little-endian records: control messages, unique ids.
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

// Throws Error(kRemote) when the bytes end too early, or are no such value: they came from outside.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_same_v<T, std::byte> T value() {
    T v;
    std::memcpy(&v, next(sizeof v).data(), sizeof v);
    return v;
  }
  // An enumeration has no value but those from `first` to `last`.
  template <class E>
  requires std::is_enum_v<E> E oneOf(E first, E last) {
    using Number = std::underlying_type_t<E>;
    const auto number = value<Number>(), least = static_cast<Number>(first), most = static_cast<Number>(last);
    if (number < least || number > most)
      throw Error(ErrorCode::kRemote, fmt::format("a record holds {} where {} to {} may stand", number, least, most));
    return static_cast<E>(number);
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

// A byte that is neither 0 nor 1 is no bool.
template <>
inline bool Reader::value<bool>() {
  const auto byte = value<uint8_t>();
  if (byte > 1) throw Error(ErrorCode::kRemote, fmt::format("a record holds {} where 0 or 1 may stand", byte));
  return byte == 1;
}

}  // namespace tutti
