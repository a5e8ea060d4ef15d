// Under which keys the parts of a communicator write to their counterparts on other ranks. All keys are made here, so
// that no two parts can come to share one.
#pragma once
#include <cstdint>

namespace tutti::comm {

// A mailbox for each pair of ranks, and the streams that are asked for beside it.
class MailKey {
 public:
  static constexpr MailKey link(uint16_t channel) noexcept { return {Use::kLink, channel}; }
  static constexpr MailKey windows() noexcept { return {Use::kWindows, 0}; }
  static constexpr MailKey preflight() noexcept { return {Use::kPreflight, 0}; }

  constexpr uint64_t mailbox() const noexcept { return base_; }
  // Both ends count their requests alike, so the count tells one attempt's stream from the next one's.
  constexpr uint64_t stream(uint32_t attempt) const noexcept { return base_ | attempt; }

 private:
  enum class Use : uint8_t { kLink, kWindows, kPreflight };
  // 8 bits of use, 24 of number within it, 32 of attempt.
  constexpr MailKey(Use use, uint16_t number) noexcept
      : base_(static_cast<uint64_t>(use) << 56 | static_cast<uint64_t>(number) << 32) {}
  uint64_t base_;
};

}  // namespace tutti::comm
