// The window of this process: one memory file that holds all memory which tuttiMemAlloc gives out, so that peers on the
// host can map it and read buffers where they lie. It is sparse: as long as twice the host's memory, up to 256 GiB, and
// nothing of it is there but pages that were touched. Addresses are reserved for all of it with the first buffer, so a
// buffer's place in the file is one subtraction (docs/decisions/0040).
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "process/fd.h"
#include "window/addresses.h"

namespace tutti::window {

// The file's first page says whose it is: two of them are told apart by it, whatever their descriptors.
struct Card {
  uint64_t magic = 0;
  uint64_t drawn[2] = {};
  friend bool operator==(const Card&, const Card&) = default;
};
inline constexpr uint64_t kMagic = 0x776f646e69777474;  // "ttwindow"

// What peers map at a time. Files have whole pieces, and the first one holds the card and nothing else.
inline constexpr size_t kPieceBytes = size_t{2} << 20;

// No file is longer.
inline constexpr uint64_t kMostBytes = uint64_t{256} << 30;

class OwnWindow {
 public:
  // A child made by fork has another.
  static OwnWindow& ofProcess();

  // Zeroed and page aligned; given back with the last owner. Null where the window has no room, or there is none.
  // Throws std::bad_alloc. Any thread.
  std::shared_ptr<void> allocate(size_t bytes);

  // The file, to be read only: a descriptor that stays open; -1 where there is no window now, and `why` says why. Any
  // thread. Throws std::bad_alloc.
  int fileForPeers(std::string& why);

  // Where a buffer is in the file. False: it is none of the window's. Any thread, never waits.
  bool placeOf(const std::byte* begin, size_t bytes, uint64_t& place) const noexcept {
    // Acquire: pairs with the release in reserve(); bytes_ is there.
    const std::byte* const base = base_.load(std::memory_order_acquire);
    if (base == nullptr || begin < base) return false;
    const auto offset = static_cast<size_t>(begin - base);
    if (offset > bytes_ || bytes > bytes_ - offset) return false;
    place = offset;
    return true;
  }

 private:
  class Buffer;
  bool begin();
  void make();
  bool reserve();
  size_t take(size_t bytes);
  bool empty(size_t at, size_t bytes) const noexcept;
  void giveBack(size_t at, size_t bytes) noexcept;

  std::atomic<const std::byte*> base_{nullptr};
  size_t bytes_ = 0;  // of the file, which may be longer: as many as there are addresses for
  std::mutex mutex_;  // guards what follows
  std::string why_;   // there is none
  UniqueFd file_, readable_;
  size_t fileBytes_ = 0;
  UniqueMap addresses_;
  std::optional<FileMark> mark_;
  std::map<size_t, size_t> free_;  // begin, bytes
};

}  // namespace tutti::window
