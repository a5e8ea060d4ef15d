// Writes the posted slots of a FIFO to a stream socket.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "link/link.h"
#include "transports/tcp/stream_result.h"

namespace tutti::transports {

// Used by the thread that owns the send end. A slot is released once its last byte has been handed to the kernel.
class Sender {
 public:
  Sender(int socket, const link::Fifo& fifo) noexcept : socket_(socket), fifo_(fifo) {}
  // Writes what is posted, several slots in one system call, until the socket takes no more.
  StreamResult pump() noexcept;
  bool pending() const noexcept { return isPosted(sent_); }

 private:
  struct Batch;
  bool isPosted(uint64_t slot) const noexcept {
    // Acquire: pairs with SendEnd::post, which may run in another thread than the one that drives the link.
    return headerOf(slot).sequence.load(std::memory_order_acquire) == slot + 1;
  }
  link::SlotHeader& headerOf(uint64_t slot) const noexcept { return fifo_.headers[slot & (fifo_.depth - 1)]; }
  void gather(Batch& batch) const noexcept;
  ssize_t send(Batch& batch) const noexcept;
  void account(size_t written) noexcept;

  int socket_;
  link::Fifo fifo_;
  uint64_t sent_ = 0;   // slots written completely
  size_t partial_ = 0;  // bytes of slot sent_ (frame included) that are written already
};

}  // namespace tutti::transports
