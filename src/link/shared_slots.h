// Slots that a rank fills once for several of its links: behind its bell, in the memory that every peer on the host has
// mapped. What a step posts to many is written here, each of the links says where, and a slot is free again when
// all who were told of it have released theirs.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/slots.h"
#include "link/fifo.h"

namespace tutti::link {

class SharedSlots {
 public:
  static constexpr size_t kSlotBytes = slots::kBytes, kCount = slots::kDepth, kMemoryBytes = kCount * kSlotBytes;

  class Slot {
   public:
    std::byte* memory() const noexcept { return memory_; }
    uint64_t place() const noexcept { return place_; }  // of it, as readers are told
    // Whoever releases its slots there up to that number has read this one.
    void tell(const Counter& released, uint64_t upTo) noexcept {
      if (readers_.size() < readers_.capacity())
        readers_.push_back({&released.value, upTo});
      else
        isFull_ = true;  // there are no more readers; if there were, nobody would know when this one has read
    }
    void giveBack() noexcept { taken_.store(false, std::memory_order_release); }

   private:
    friend class SharedSlots;
    struct Reader {
      const std::atomic<uint64_t>* released;
      uint64_t upTo;
    };
    bool isRead() const noexcept {
      if (isFull_) return false;
      // Acquire: pairs with RecvEnd::release; the reader has read what is about to be overwritten.
      return std::ranges::all_of(
          readers_, [](const Reader& one) { return one.released->load(std::memory_order_acquire) >= one.upTo; });
    }
    std::atomic<bool> taken_{false};
    std::byte* memory_ = nullptr;
    uint64_t place_ = 0;
    std::vector<Reader> readers_;  // of what is in it; these two by whoever has taken it
    bool isFull_ = false;
  };

  // Over kMemoryBytes, which outlive this, as the counters do that are told. `readers`: the most of one slot. Throws
  // std::bad_alloc.
  SharedSlots(std::byte* memory, size_t readers) {
    for (size_t i = 0; i < kCount; ++i) {
      slots_[i].memory_ = memory + i * kSlotBytes;
      slots_[i].place_ = i * kSlotBytes;
      slots_[i].readers_.reserve(readers);
    }
  }
  // The caller's alone until it is given back; null: the next one is still read, or filled by another thread. Any
  // thread.
  Slot* take() noexcept {
    Slot& slot = slots_[next_.fetch_add(1, std::memory_order_relaxed) % kCount];
    // Acquire: pairs with giveBack(); the readers are there.
    if (slot.taken_.exchange(true, std::memory_order_acquire)) return nullptr;
    if (slot.isRead()) return slot.readers_.clear(), &slot;
    slot.giveBack();
    return nullptr;
  }

 private:
  std::array<Slot, kCount> slots_;
  std::atomic<size_t> next_{0};
};

}  // namespace tutti::link
