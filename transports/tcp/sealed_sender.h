// Writes the posted slots of a FIFO to a stream socket as sealed records.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "link/link.h"
#include "net/cipher.h"
#include "transports/tcp/stream_result.h"

namespace tutti::transports {

// Used by the thread that owns the send end. Sealing is what copies a slot, into a buffer of its own: the slot stays as
// it was. As with Sender, a slot is released once its last byte has been handed to the kernel. One that can not be
// sealed, since the key has gone, is never sent: a fault.
class SealedSender {
 public:
  SealedSender(int socket, const link::Fifo& fifo, const SessionKeys& keys);
  // Writes what is posted until the socket takes no more.
  StreamResult pump() noexcept;
  bool pending() const noexcept { return isPosted(sent_); }
  size_t bufferBytes() const noexcept { return capacity_; }

 private:
  static constexpr size_t kBatchSlots = 8;
  bool isPosted(uint64_t slot) const noexcept {
    // Acquire: pairs with SendEnd::post, which may run in another thread than the one that drives the link.
    return headerOf(slot).sequence.load(std::memory_order_acquire) == slot + 1;
  }
  link::SlotHeader& headerOf(uint64_t slot) const noexcept { return fifo_.headers[slot & (fifo_.depth - 1)]; }
  bool sealBatch() noexcept;
  bool seal(uint64_t slot) noexcept;
  void account(size_t written) noexcept;

  int socket_;
  link::Fifo fifo_;
  Cipher cipher_;
  size_t capacity_;
  std::unique_ptr<std::byte[]> wire_;
  size_t filled_ = 0, written_ = 0;         // of wire_
  std::array<size_t, kBatchSlots> ends_{};  // of the batch's slots in wire_
  size_t batch_ = 0;                        // slots in wire_, of which sent_ - first_ have been written
  uint64_t first_ = 0, sent_ = 0;
};

}  // namespace tutti::transports
