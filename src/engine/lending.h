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
// one is done sooner if nobody waits for its peers to have read.
inline constexpr size_t kLeastMapped = size_t{8} << 10;
// Where ranks share cores, waiting for who reads takes a turn of all: a broadcast of 8 KiB among 8 on two took 26 us
// lent, and 10 through slots.
inline constexpr size_t kLeastMappedInTurns = size_t{16} << 10;

// Of one plan, by whoever runs it. All ranks of a collective try the same way in the same call, as they count the same
// calls (of a kind: in place or not): what is compared is what it takes when all do alike. Between tries each goes by
// what it has seen itself. Binding::mappedTrial counts calls in which this rank's memory is mapped; where the peer's is
// not in all of these, it may compare mixtures.
class LendingTrial {
 public:
  // What is shorter stays in the caches, and a system call takes as long as a copy of it. Several who read the same
  // find it in slots that one has filled.
  static constexpr size_t kLeastBytes = size_t{16} << 10, kLeastAmongMany = size_t{64} << 10;

  // Which way is taken until both have been tried. Slots are, too, where they were faster for shorter messages, unless
  // each length is for itself.
  enum class Learns : uint8_t { kFromShorter, kEachAlone };
  LendingTrial() = default;
  explicit LendingTrial(bool lendsFirst, Learns learns = Learns::kFromShorter)
      : lendsFirst_(lendsFirst), learns_(learns) {}

  // Of a call that moves so many bytes over its longest link: how it goes. In place there is less to copy, so neither
  // way takes what it takes elsewhere. `crowded`: lending is likely to be faster now, and taken to be for some calls,
  // unless it has been much slower of late.
  bool lends(size_t bytes, bool inPlace, bool crowded = false) noexcept {
    place_ = inPlace ? 1 : 0;
    size_ = std::min<size_t>(static_cast<size_t>(std::bit_width(bytes / kLeastBytes)), kSizes - 1);
    OfSize& now = sizes_[place_][size_];
    const uint32_t call = now.calls++;
    const uint32_t turn = call < kUntried ? 2 * kRun + call : turnOf(call - kUntried);
    const bool tries = turn < 2 * kRun;
    counts_ = tries ? turn % kRun != 0 : turn > 2 * kRun;
    if (crowded) now.crowdedUntil = call + kBelieved;
    lendsNow_ = tries ? turn / kRun % 2 != 0 : (call < now.crowdedUntil && !now.lendingIsSlow()) || lendingIsFaster();
    return lendsNow_;
  }
  // How long that call took.
  void took(uint64_t ticks, size_t bytes) noexcept {
    if (!counts_) return;
    uint64_t& usual = sizes_[place_][size_].usual[lendsNow_ ? 1 : 0];
    const uint64_t now = ticks * kParts / (bytes / kLine) + 1;
    // Of late. What takes much longer was interrupted.
    usual = usual == 0 ? now : usual - usual / 4 + std::min(now, 2 * usual) / 4;
  }

 private:
  // Three calls in a row go one way, then three the other, and the first of each does not count: where slots are free a
  // call leaves a part of its work to the next, and one that follows upon the other way has nothing left to it.
  static constexpr uint32_t kUntried = 32, kRun = 3, kTryEvery = 64, kBelieved = 16;
  // What has been tried so often is known; the slower way may take three times as long.
  static constexpr uint32_t kTried = 8, kTryAgainEvery = 256;
  static constexpr uint64_t kLine = 64, kParts = 16;  // times are of a line, in sixteenths of a tick
  struct OfSize {
    uint32_t calls = 0, crowdedUntil = 0;
    std::array<uint64_t, 2> usual{};  // through slots, and lent
    bool lendingIsSlow() const noexcept { return usual[0] != 0 && usual[1] > usual[0] + usual[0] / 4; }
  };
  static uint32_t turnOf(uint32_t call) noexcept {
    return call % (call < kTried * kTryEvery ? kTryEvery : kTryAgainEvery);
  }
  // Slots that are faster for shorter messages are so for longer ones; of single copies that does not hold.
  bool lendingIsFaster() const noexcept {
    const size_t least = learns_ == Learns::kEachAlone ? size_ : 0;
    for (size_t size = size_ + 1; size-- != least;) {
      const auto& [slots, lent] = sizes_[place_][size].usual;
      if (slots != 0 && lent != 0) return lent + lent / 32 < slots && (size == size_ || lendsFirst_);
    }
    return lendsFirst_;
  }

  static constexpr size_t kSizes = 16;
  bool lendsFirst_ = false;
  Learns learns_ = Learns::kFromShorter;
  std::array<std::array<OfSize, kSizes>, 2> sizes_{};  // by powers of two, each out of place and in place
  size_t place_ = 0, size_ = 0;                        // of the current call
  bool counts_ = false, lendsNow_ = false;
};

}  // namespace tutti::engine
