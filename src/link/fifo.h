// The FIFO that every link is made of: slots, a header line for each, and a counter of released slots.
//
// One writer for every cache line: the sender writes slots and headers, the receiver writes `released`.
// A slot is posted by storing its number + 1 into its header's `sequence`, so that flag, fingerprint and, for up to
// kInlineBytes, the payload itself cross between two cores in one cache line. Numbers are 64 bits wide, count from 0
// over the whole life of the link and are never reset: a stale header can not look new.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/slots.h"
#include "base/types.h"

namespace tutti::link {

// What a slot belongs to: a call, and the plan by which it runs. Both ends compute it from their own; if they differ,
// the calls did not match, or the ranks run them in different ways. Without a plan (yet) its fields are 0.
struct Fingerprint {
  uint64_t count : 48 = 0;    // elements (0 where the counts of the ranks may differ: all-to-all-v)
  uint64_t channels : 7 = 0;  // of the plan
  uint64_t grouping : 9 = 0;  // of the plan: schedule::Schedule::grouping
  uint32_t operation = 0;     // number of the collective in its communicator, or of the message between two ranks
  uint16_t root = 0;          // or a digest of the counts, where each rank's part has its own
  uint8_t kindAndType = 0;    // Collective << 4 | DataType
  uint8_t op : 4 = 0;         // ReduceOp
  uint8_t algorithm : 4 = 0;  // of the plan: 1 + schedule::Algorithm

  using Words = std::array<uint64_t, 2>;
  constexpr Words words() const noexcept { return std::bit_cast<Words>(*this); }
  bool planned() const noexcept { return algorithm != 0 && channels != 0; }
  // The call alone.
  Fingerprint call() const noexcept {
    Fingerprint mark = *this;
    mark.channels = mark.grouping = 0;
    mark.algorithm = 0;
    return mark;
  }
  // As words: no field can be forgotten. One by one: what compares arrays ends in a builtin of g++, for which nvcc
  // makes code of a GPU that never comes back (tests/gpu/ends_test.py).
  friend constexpr bool operator==(const Fingerprint& a, const Fingerprint& b) noexcept {
    const Words mine = a.words(), theirs = b.words();
    return mine[0] == theirs[0] && mine[1] == theirs[1];
  }
};
static_assert(sizeof(Fingerprint) == 16);

inline constexpr uint32_t kInlineBytes = 32;

// Where the payload of a slot is. Over a direct link, both ends of which reach each other's registered buffers, it may
// be in the sender's input, which the receiver reads in place, or in the receiver's output already. kTakenBack: it was
// in the sender's buffer, whose call has failed since.
enum class PayloadLocation : uint32_t { kInSlot, kAtSender, kAtReceiver, kTakenBack };

// A place in a registered buffer, as the rank that has it tells a peer: an address where both have one address space,
// else what is in front of it in a buffer that the peer has mapped, under the number `window`, which is not 0 then.
struct RemoteAddress {
  uint64_t at = 0, window = 0;
};

// What a slot that is kAtSender says.
struct Lent {
  RemoteAddress place;
  // Of how many bytes, from there on, the same call lends all until its end; not less than the payload.
  uint64_t bytes = 0;
  // On the host: how many rounds of its step it is the post of, whose payloads follow one another there. All but the
  // last are as long as the slot's.
  uint64_t rounds = 1;
};
static_assert(sizeof(Lent) <= kInlineBytes);

// Two header lines never share what an adjacent-line prefetcher fetches together.
struct alignas(128) SlotHeader {
  std::atomic<uint64_t> sequence{0};
  Fingerprint fingerprint;
  uint32_t bytes = 0;  // payload
  PayloadLocation carried = PayloadLocation::kInSlot;
  std::byte inlined[kInlineBytes];  // kInSlot: the payload itself when bytes <= kInlineBytes; kAtSender: Lent
};
static_assert(offsetof(SlotHeader, inlined) + kInlineBytes == 64);

// What a header says of its slot. The peer may change the header at any time: whoever judges it judges a copy, of which
// every part has been read once.
struct Said {
  Fingerprint fingerprint;
  uint32_t bytes = 0;
};

// kByKernel: any of it, at its address (see PeerMemory). kMapped: what is in its window, at its place there
// (window::View), and by the number kWindow. kShared: what is in its SharedSlots, by the number kSharedSlots.
enum ReadsSender : uint32_t { kByKernel = 1, kMapped = 2, kShared = 4 };
inline constexpr uint64_t kWindow = 1, kSharedSlots = 2;

struct alignas(128) Counter {
  std::atomic<uint64_t> value{0};
  // Of a direct link, written by the receiver at the begin of its operation: where its output begins, which the sender
  // may write to during that operation, whose number + 1 is in `outputOf`.
  RemoteAddress output;
  uint64_t outputOf = 0;
  // On the host: how the receiver has found out that it can read the sender's memory, in bits of ReadsSender. The
  // sender may then post where a payload lies in that (PayloadLocation::kAtSender).
  std::atomic<uint32_t> readsSender{0};
};

// Where a rank sleeps when it has waited long: a futex word that its peers ring after a post or a release, or after
// several (see Wakeups). Its streams may sleep side by side, so the other words count threads.
struct alignas(128) Doorbell {
  std::atomic<uint32_t> rings{0};
  std::atomic<uint32_t> sleeping{0};
  std::atomic<uint32_t> polling{0};  // of these: how many sleep on sockets, and hear only what comes through the ear
  std::atomic<uint32_t> patient{0};  // of these: how many would rather wake to several slots
  uint64_t ear[2] = {};              // its name (see link/ear.h), written before the first thread counts as polling
};

// Plain data: the same for a host thread, a CUDA block and the order of a stream.
struct Fifo {
  std::byte* slots = nullptr;
  SlotHeader* headers = nullptr;
  Counter* released = nullptr;
  uint32_t slotBytes = 0;
  uint32_t depth = 0;  // slots: a power of two
  uint32_t lines = 0;  // headers: as many, or more where a post may do without its slot; a power of two
  // Of a short slot behind the headers, one a line, which takes what is no longer; 0: there is none.
  uint32_t shortBytes = 0;
  // In how many parts a slot may be, a power of two: a payload takes the smallest that it fits into, so that of short
  // ones there is room for one a line where lines are up to so many times as many.
  uint32_t parts = 1;
  static constexpr uint32_t kMostParts = 8;

  SlotHeader& line(uint64_t number) const noexcept { return headers[number & (lines - 1)]; }
  std::byte* slot(uint64_t number) const noexcept { return slots + (number & (depth - 1)) * size_t{slotBytes}; }
  // Where a payload of so many bytes is, or goes.
  std::byte* place(uint64_t number, size_t bytes) const noexcept {
    if (bytes <= kInlineBytes) return line(number).inlined;
    if (bytes > shortBytes) return part(number, partsFor(bytes));
    return reinterpret_cast<std::byte*>(headers + lines) + (number & (lines - 1)) * size_t{shortBytes};
  }
  // In so many parts is a slot for a payload of so many bytes.
  uint32_t partsFor(size_t bytes) const noexcept {
    uint32_t count = parts;
    while (count > 1 && bytes > slotBytes / count) count /= 2;
    return count;
  }
  // Whoever comes to a slot next takes the other half of it, or has its part there, and whoever comes then another
  // quarter than all three: so payloads of all lengths keep apart as long as those do that take as much as the longest.
  std::byte* part(uint64_t number, uint32_t count) const noexcept {
    std::byte* begin = slot(number);
    size_t bytes = slotBytes;
    for (uint64_t turn = number >> std::countr_zero(depth); count > 1; count /= 2, turn /= 2) {
      bytes /= 2;
      if (turn % 2 == 1) begin += bytes;
    }
    return begin;
  }

  static constexpr uint32_t shortBytesOf(uint32_t depth, uint32_t lines) noexcept {
    if (lines <= depth) return 0;
    return lines > slots::kLines ? slots::kShortBytesOfPair : slots::kShortBytes;
  }
  static constexpr size_t bytesFor(uint32_t slotBytes, uint32_t depth, uint32_t lines) noexcept {
    return sizeof(Counter) + lines * (sizeof(SlotHeader) + size_t{shortBytesOf(depth, lines)}) +
           depth * size_t{slotBytes};
  }
  static constexpr size_t bytesFor(uint32_t slotBytes, uint32_t depth) noexcept {
    return bytesFor(slotBytes, depth, depth);
  }
  // Lays a FIFO out in `memory` (bytesFor() bytes, zeroed, 128-byte aligned). Both ends do so, over the same memory.
  static Fifo over(std::byte* memory, uint32_t slotBytes, uint32_t depth, uint32_t lines) noexcept {
    auto* released = reinterpret_cast<Counter*>(memory);
    auto* headers = reinterpret_cast<SlotHeader*>(memory + sizeof(Counter));
    const uint32_t shortBytes = shortBytesOf(depth, lines);
    std::byte* const slots = reinterpret_cast<std::byte*>(headers + lines) + lines * size_t{shortBytes};
    return {slots, headers, released, slotBytes, depth, lines, shortBytes};
  }
  static Fifo over(std::byte* memory, uint32_t slotBytes, uint32_t depth) noexcept {
    return over(memory, slotBytes, depth, depth);
  }
  // Its slots in parts, where it has more lines. Both ends, or neither.
  Fifo divided() const noexcept {
    Fifo fifo = *this;
    fifo.parts = std::min(lines / depth, kMostParts);
    return fifo;
  }
};

}  // namespace tutti::link
