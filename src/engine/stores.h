// Which stores fill a step's slots in mapped memory: ordinary ones, or such that go around the caches. An ordinary
// store waits until this core owns the line, which the reader had last. Where the two share a cache that costs as much
// as it does to go around it; where they do not - two sockets, two dies, a virtual machine whose cores have been put
// apart - several times as much (docs/decisions/0030). No system says where its cores are now: so it is tried.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tutti::engine {

// Of one step, by whoever runs it. A small object, since schedules have many steps.
class Stores {
 public:
  // What is smaller is read at once, and waiting until it has left would cost more.
  static constexpr size_t kLeastBytes = 4 << 10;

  // How to fill the next slot.
  bool around() noexcept {
    const bool other = ++slots_ % kTryEvery == 0 || slots_ == 2 || slots_ == 8;
    return other ? !aroundIsBetter() : aroundIsBetter();
  }
  // How long the step took, arithmetic included, to fill so many bytes of slots.
  void took(bool around, size_t bytes, uint64_t ticks) noexcept {
    constexpr uint64_t kMost = UINT32_MAX / 2;
    uint32_t& least = around ? around_ : ordinary_;
    const auto now = static_cast<uint32_t>(std::min(kMost, ticks * kLine * kParts / bytes));
    // The least of late: what takes longer was interrupted, and what was true once is forgotten.
    least = least == 0 ? now : std::min(now, least + least / 32 + 1);
  }

 private:
  static constexpr uint32_t kTryEvery = 61;           // a prime: calls have the same slots each time
  static constexpr uint64_t kLine = 64, kParts = 16;  // times are of a line, in sixteenths of a tick
  // What the reader of a line pays where it would have found it in a cache that both share.
  static constexpr uint32_t kReaderPays = 16 * kParts;
  bool aroundIsBetter() const noexcept { return around_ != 0 && ordinary_ > around_ + kReaderPays; }

  uint32_t slots_ = 0, ordinary_ = 0, around_ = 0;
};

}  // namespace tutti::engine
