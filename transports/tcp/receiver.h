// Fills the free slots of a FIFO from a stream socket.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/slots.h"
#include "link/link.h"
#include "transports/tcp/framing.h"
#include "transports/tcp/stream_result.h"

struct iovec;

namespace tutti::transports {

// Used by the thread that owns the receive end. Nothing is read while no slot is free: TCP's own flow control then
// holds the peer back.
template <class Framing>
class Receiver {
 public:
  Receiver(int socket, const link::Fifo& fifo, Framing framing = Framing()) noexcept
      : socket_(socket), fifo_(fifo), framing_(std::move(framing)) {}
  // Reads what has come. The end of the stream is a fault only once all that came before it has been taken.
  StreamResult pump() noexcept;
  // Whether a look would take bytes that have come. A stream that has ended has none: whoever waits for more of it than
  // it brought finds that out by pump().
  bool wantsMore() const noexcept { return !ended_ && (inPayload_ || hasFreeSlot()); }
  // Of the next slot, or one to come, from now on until it has arrived. What has been read of it already goes there,
  // too. Without a place it says how long that slot will be.
  void land(const link::Landing& landing) noexcept;
  // What has landed in part goes on in its slot.
  void stopLanding() noexcept;

 private:
  // Small frames come several to a system call, through this buffer. A long payload is read straight into its slot.
  static constexpr size_t kAheadBytes = 16 << 10;
  // Behind a long payload only so much is read ahead: the next frame, but little of its payload, which would have to
  // be copied, or a short one whole.
  static constexpr size_t kTrailingBytes = 2 << 10;
  // A long payload whose length is likely known before its head has come: it is read to its place together with that.
  struct Guess {
    std::byte* to = nullptr;  // null: none
    size_t bytes = 0;
  };
  // From this part of a slot on: shorter ones come several to a system call.
  static constexpr uint32_t kLeastGuessed = 16;

  bool hasFreeSlot() const noexcept {
    // Acquire: pairs with RecvEnd::release; the slot that is about to be overwritten has been read.
    return arrived_ - fifo_.released->value.load(std::memory_order_acquire) < fifo_.depth;
  }
  link::SlotHeader& header() const noexcept { return fifo_.headers[arrived_ & (fifo_.depth - 1)]; }
  std::byte* slot() const noexcept;
  std::byte* place() const noexcept { return to_ != nullptr ? to_ : slot(); }
  void landIfItIsThat() noexcept;
  bool unpack(StreamResult& result) noexcept;
  size_t tailBytes() const noexcept { return following_ > 0 ? Framing::kTailBytes : 0; }
  bool beginSlot(StreamResult& result) noexcept;
  bool endSlot(StreamResult& result) noexcept;
  bool read(StreamResult& result) noexcept;
  ssize_t receive(iovec* parts, int count) const noexcept;
  std::byte* longSlot() const noexcept {
    return fifo_.slots + (arrived_ & (fifo_.depth - 1)) * size_t{fifo_.slotBytes};
  }
  Guess guess() const noexcept;
  int destinations(const Guess& guess, iovec* parts) noexcept;
  bool takeGuessed(size_t bytes, const Guess& guess, StreamResult& result) noexcept;
  void account(size_t bytes) noexcept;
  void endOfStream(StreamResult& result) noexcept;

  int socket_;
  link::Fifo fifo_;
  [[no_unique_address]] Framing framing_;
  uint64_t arrived_ = 0;  // slots that are complete in the FIFO
  bool inPayload_ = false;
  bool ended_ = false;
  bool landed_ = false;      // a slot, in this turn
  link::Landing landing_;    // of a slot that has arrived: none
  std::byte* to_ = nullptr;  // where the current payload lands
  uint32_t following_ = 0;   // bytes of the current payload that come behind the head
  size_t filled_ = 0;        // of these
  size_t begin_ = 0, end_ = 0;
  // What was guessed wrongly has room here as well.
  std::array<std::byte, Framing::kHeadBytes + slots::kBytes + kTrailingBytes> ahead_;
};

extern template class Receiver<ClearFraming>;
extern template class Receiver<SealedFraming>;

}  // namespace tutti::transports
