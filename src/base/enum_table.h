// A value for each member of an enumeration, found by the member and by nothing else.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>

namespace tutti {

template <class Enum, class Value, int kCount>
struct EnumTable {
  std::array<Value, kCount> values{};

  constexpr Value& operator[](Enum member) noexcept { return values[static_cast<size_t>(member)]; }
  constexpr const Value& operator[](Enum member) const noexcept { return values[static_cast<size_t>(member)]; }
  constexpr void fill(const Value& value) noexcept { values.fill(value); }
};

// Members 0 to kCount - 1, in their order.
template <class Enum, int kCount>
constexpr std::array<Enum, kCount> firstMembers() noexcept {
  std::array<Enum, kCount> members{};
  for (int i = 0; i < kCount; ++i) members[static_cast<size_t>(i)] = static_cast<Enum>(i);
  return members;
}

// Whether each row of a table says of itself that it is the one of the member at whose place it is.
template <class Rows, class Member>
constexpr bool areInOrder(const Rows& rows, Member member) noexcept {
  size_t place = 0;
  return std::all_of(std::begin(rows), std::end(rows),
                     [&](const auto& row) { return static_cast<size_t>(row.*member) == place++; });
}

}  // namespace tutti
