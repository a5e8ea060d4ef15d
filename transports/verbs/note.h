// What the two ends of a link tell each other: 32 bits beside a write. Numbers of slots are cut to 16 bits, which is
// far more than can be under way.
#pragma once
#include <cstdint>

namespace tutti::verbs {

struct Note {
  enum class Kind : uint8_t {
    kPart,     // a part of slot `number` has come: part `path` of `value` + 1
    kCredit,   // all slots before `number` have been released
    kRetire,   // path `path` is broken: stop it, and say what has come; `value` tells askings apart
    kHave,     // an answer: of slot `number` the parts in the mask `value` have come
    kRetired,  // that was all: all slots before `number` have come; `path` and `value` are those of the question
    kRevive,   // path `path` may live again, in the life `value`
    kRevived,  // it does
  };
  Kind kind = Kind::kPart;
  uint8_t path = 0;     // 4 bits
  uint8_t value = 0;    // 8 bits
  uint16_t number = 0;  // 16 bits

  constexpr uint32_t bits() const noexcept {
    return static_cast<uint32_t>(kind) << 29 | uint32_t{path} << 24 | uint32_t{value} << 16 | number;
  }
  static constexpr Note of(uint32_t bits) noexcept {
    return {static_cast<Kind>(bits >> 29), static_cast<uint8_t>(bits >> 24 & 0xf), static_cast<uint8_t>(bits >> 16),
            static_cast<uint16_t>(bits)};
  }
};

// The 64-bit number nearest to `near` whose last 16 bits these are.
constexpr uint64_t unfold(uint16_t number, uint64_t near) noexcept {
  return near + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(number - static_cast<uint16_t>(near))));
}

}  // namespace tutti::verbs
