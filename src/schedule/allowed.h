// What may be chosen: some members of an enumeration (algorithms, protocols), as a list in a setting names them.
#pragma once
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace tutti::schedule {

// Plain data in two bytes, so that a call has room for one. Nothing said is all of them.
template <class Enum>
class AllowedOf {
 public:
  static constexpr int kMostMembers = 15;

  constexpr AllowedOf() noexcept = default;
  // That one, which is taken even where it is unwise.
  constexpr AllowedOf(Enum only) noexcept : bits_(static_cast<uint16_t>(bitOf(only) | kForced)) {}
  // One alone is forced, too.
  static constexpr AllowedOf only(std::span<const Enum> members) noexcept {
    const uint16_t bits = bitsOf(members);
    return fromBits(std::popcount(bits) == 1 ? bits | kForced : bits);
  }
  static constexpr AllowedOf only(std::initializer_list<Enum> members) noexcept {
    return only(std::span(members.begin(), members.size()));
  }
  static constexpr AllowedOf allBut(std::span<const Enum> members) noexcept {
    return fromBits(kEvery & ~bitsOf(members));
  }
  static constexpr AllowedOf allBut(std::initializer_list<Enum> members) noexcept {
    return allBut(std::span(members.begin(), members.size()));
  }

  constexpr bool has(Enum member) const noexcept { return !says() || (bits_ & bitOf(member)) != 0; }
  // Whether anything was said.
  constexpr bool says() const noexcept { return bits_ != 0; }
  constexpr std::optional<Enum> forced() const noexcept {
    if ((bits_ & kForced) == 0) return std::nullopt;
    return static_cast<Enum>(std::countr_zero(bits_));
  }
  friend constexpr bool operator==(AllowedOf, AllowedOf) noexcept = default;

 private:
  static constexpr uint16_t kEvery = (1u << kMostMembers) - 1, kForced = 1u << kMostMembers;
  static constexpr uint16_t bitOf(Enum member) noexcept {
    return static_cast<uint16_t>(1u << static_cast<int>(member));
  }
  static constexpr uint16_t bitsOf(std::span<const Enum> members) noexcept {
    uint16_t bits = 0;
    for (const Enum member : members) bits = static_cast<uint16_t>(bits | bitOf(member));
    return bits;
  }
  static constexpr AllowedOf fromBits(int bits) noexcept {
    AllowedOf made;
    made.bits_ = static_cast<uint16_t>(bits);
    return made;
  }

  uint16_t bits_ = 0;
};

// As a setting would say it, the shorter way: "ring,tree", "^direct". What means the same has the same text. `every`:
// those that there are.
template <class Enum>
std::string textOf(AllowedOf<Enum> allowed, std::span<const Enum> every) {
  std::string in, out;
  int inside = 0, outside = 0;
  for (const Enum member : every) {
    const bool has = allowed.has(member);
    ++(has ? inside : outside);
    std::string& list = has ? in : out;
    list.append(list.empty() ? "" : ",").append(nameOf(member));
  }
  const bool shorter = inside <= outside && inside != 1;
  return allowed.forced() || shorter || outside == 0 ? in : "^" + out;
}

}  // namespace tutti::schedule
