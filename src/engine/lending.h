// Whether a plan's calls lend what peers only copy, to be read where it lies (link/peer_memory.h), or fill slots. One
// copy instead of two saves most where every core is busy with copies, as in an all-gather; but the system's copy is
// slower than an ordinary one, and where a core would wait anyway, two copies on two cores go hand in hand and win.
// No system says which it is: so both are tried.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tutti::engine {

// A piece that is shorter costs less to copy than to look up.
inline constexpr size_t kLeastPieceLent = 4 << 10;

// In memory that the peer has mapped: how long a call is over its longest link before its pieces are lent. A shorter
// one is done sooner if nobody waits for its peers to have read; and those on the short way (ShortSteps) find all in
// slots.
inline constexpr size_t kLeastMapped = size_t{8} << 10;

// Of one plan, by whoever runs it. All ranks of a collective try the same way in the same call, as they count the same
// calls: what is compared is what it takes when all do alike.
class LendingTrial {
 public:
  // What is shorter stays in the caches, and a system call takes as long as a copy of it.
  static constexpr size_t kLeastBytes = size_t{64} << 10;

  // Of a call that moves so many bytes over its longest link: how it goes. In place there is less to copy, so neither
  // way takes what it takes elsewhere.
  bool lends(size_t bytes, bool inPlace) noexcept {
    auto& sizes = sizes_[inPlace ? 1 : 0];
    now_ = &sizes[std::min<size_t>(static_cast<size_t>(std::bit_width(bytes / kLeastBytes)), sizes.size() - 1)];
    const uint32_t call = now_->calls++;
    tries_ = call < kFirstTries || call % kTryEvery < 2;
    lendsNow_ = tries_ ? call % 2 != 0 : lendingIsFaster();
    return lendsNow_;
  }
  // How long that call took.
  void took(uint64_t ticks, size_t bytes) noexcept {
    if (!tries_) return;
    uint64_t& least = now_->least[lendsNow_ ? 1 : 0];
    const uint64_t now = ticks * kParts / (bytes / kLine) + 1;
    // The least of late: what takes longer was interrupted, and what was true once is forgotten.
    least = least == 0 ? now : std::min(now, least + least / 8);
  }

 private:
  static constexpr uint32_t kFirstTries = 8, kTryEvery = 64;
  static constexpr uint64_t kLine = 64, kParts = 16;  // times are of a line, in sixteenths of a tick
  struct OfSize {
    uint32_t calls = 0;
    std::array<uint64_t, 2> least{};  // through slots, and lent
  };
  bool lendingIsFaster() const noexcept {
    const auto& [slots, lent] = now_->least;
    return lent != 0 && lent + lent / 16 < slots;
  }

  std::array<std::array<OfSize, 16>, 2> sizes_{};  // by powers of two, each out of place and in place
  OfSize* now_ = nullptr;
  bool tries_ = false, lendsNow_ = false;
};

}  // namespace tutti::engine
