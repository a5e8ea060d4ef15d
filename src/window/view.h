// The window of a process as another one sees it, or as its other threads do: read only, and mapped piece by piece when
// something in a piece is first read, the first time with addresses for the whole. What a peer says of a place in it is
// believed only if all of it lies within.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "process/fd.h"
#include "window/own_window.h"

namespace tutti::window {

class View {
 public:
  // Of a file that a peer has passed. There is one for each file, whoever asks, as long as anybody has it. Null where
  // it is no window: `why` says so. Throws std::bad_alloc. Any thread.
  static std::shared_ptr<View> of(UniqueFd file, std::string& why);

  // Null: that is not in the window, or cannot be mapped. It may be read as long as the view is there, though its owner
  // may be gone. Any thread; waits for others that map, and never for long.
  const std::byte* at(uint64_t place, size_t bytes) noexcept {
    if (!holds(place, bytes)) return nullptr;
    for (uint64_t piece = place / kPieceBytes; piece <= (place + bytes - 1) / kPieceBytes; ++piece)
      // Acquire: pairs with map(); the piece is there.
      if ((mapped_[piece / 64].load(std::memory_order_acquire) >> piece % 64 & 1) == 0 && !map(piece)) return nullptr;
    return base_.load(std::memory_order_relaxed) + place;  // it was there before the piece
  }
  // Why at() returned null.
  std::string_view fault(uint64_t place, size_t bytes) const noexcept {
    return holds(place, bytes) ? "a part of the memory that it shares cannot be mapped"
                               : "it says that data is outside of the memory that it shares";
  }
  size_t mappedBytes() const noexcept;

 private:
  View(UniqueFd file, uint64_t bytes);
  // The card is no buffer.
  bool holds(uint64_t place, size_t bytes) const noexcept {
    return bytes != 0 && place >= kPieceBytes && place <= bytes_ && bytes <= bytes_ - place;
  }
  bool map(uint64_t piece) noexcept;
  bool reserve() noexcept;

  const UniqueFd file_;
  const FileMark mark_;
  const uint64_t bytes_;
  const std::unique_ptr<std::atomic<uint64_t>[]> mapped_;  // a bit for each piece
  std::atomic<std::byte*> base_{nullptr};                  // of the addresses
  std::mutex mapping_;                                     // held by who maps a piece; guards what follows
  UniqueMap addresses_;
};

}  // namespace tutti::window
