// Which stores fill a step's slots in mapped memory: ordinary ones, or such that go around the caches. An ordinary
// store waits until this core owns the line, which the reader had last. Where the two share a cache that costs as much
// as it does to go around it; where they do not - two sockets, two dies, a virtual machine whose cores have been put
// apart - several times as much (docs/decisions/0030). No system says where its cores are now: so it is tried. The same
// of a rank's own output, where that is long: an ordinary store reads each line first, from memory where no cache has
// it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tutti::engine {

// Of one step, by whoever runs it. A small object, since schedules have many steps.
class Stores {
 public:
  // By how much it has to be faster to go around: by so many ticks for each line that is filled, and by a quarter.
  enum class Gain : uint8_t { kReaderPays, kQuarter };
  struct Choice {
    bool around = false, isTry = false;
    bool isTimed = true;  // where each clock reading counts, only some are (nextOfMany())
  };
  // What is smaller is read at once, and waiting until it has left would cost more.
  static constexpr size_t kLeastBytes = 4 << 10;
  // An output that is shorter is likely to be found in a cache by whoever reads it next.
  static constexpr size_t kLongOutput = size_t{8} << 20;

  Stores() = default;
  explicit Stores(Gain gain) : gain_(gain) {}

  // How to fill the next slot.
  Choice next() noexcept {
    const bool isTry = ++slots_ % kTryEvery == 0 || slots_ == 2 || slots_ == 8;
    return {isTry != aroundIsBetter(), isTry};
  }
  // The same where what is filled is so short that reading the clock each time would cost more than is gained.
  Choice nextOfMany() noexcept {
    Choice choice = next();
    choice.isTimed = choice.isTry || slots_ % kTimeEvery == 0;
    return choice;
  }
  // The way that is known to be the better one.
  Choice usual() const noexcept { return {aroundIsBetter(), false}; }
  // How long the step took, arithmetic included, to fill so many bytes of slots.
  void took(bool around, size_t bytes, uint64_t ticks) noexcept {
    constexpr uint64_t kMost = UINT32_MAX / 2;
    uint32_t& known = around ? around_ : ordinary_;
    const auto now = static_cast<uint32_t>(std::min(kMost, ticks * kLine * kParts / bytes));
    known = known == 0 ? now : gain_ == Gain::kQuarter ? usualOf(known, now) : leastOf(known, now);
  }

 private:
  // Of late: what takes longer was interrupted, and what was true once is forgotten.
  static uint32_t leastOf(uint32_t known, uint32_t now) noexcept { return std::min(now, known + known / 32 + 1); }
  // Where memory is what is waited for, some lines are in a cache by chance.
  static uint32_t usualOf(uint32_t known, uint32_t now) noexcept {
    return known - known / 4 + std::min(now, 2 * known) / 4;
  }

  static constexpr uint32_t kTimeEvery = 8;
  static constexpr uint32_t kTryEvery = 61;           // a prime: calls have the same slots each time
  static constexpr uint64_t kLine = 64, kParts = 16;  // times are of a line, in sixteenths of a tick
  // What the reader of a line pays where it would have found it in a cache that both share.
  static constexpr uint32_t kReaderPays = 16 * kParts;
  bool aroundIsBetter() const noexcept {
    return around_ != 0 && ordinary_ > around_ + (gain_ == Gain::kQuarter ? around_ / 4 : kReaderPays);
  }

  uint32_t slots_ = 0, ordinary_ = 0, around_ = 0;
  Gain gain_ = Gain::kReaderPays;
};

}  // namespace tutti::engine
