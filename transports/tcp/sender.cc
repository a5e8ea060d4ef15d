#include "transports/tcp/sender.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/tcp/framing.h"

namespace tutti::transports {
namespace {

constexpr size_t kBatchSlots = slots::kStreamDepthOfPair;

}  // namespace

struct Sender::Batch {
  // A small payload travels right behind its frame, so that it needs no entry of its own in the gather list.
  Head heads[kBatchSlots];
  iovec parts[2 * kBatchSlots];
  size_t slots = 0, count = 0, bytes = 0;

  void add(void* data, size_t length) noexcept {
    parts[count++] = {data, length};
    bytes += length;
  }
  void skip(size_t length) noexcept {
    bytes -= length;
    for (iovec* part = parts; length > 0; ++part) {
      const size_t step = std::min(length, part->iov_len);
      part->iov_base = static_cast<std::byte*>(part->iov_base) + step;
      part->iov_len -= step;
      length -= step;
    }
  }
};

void Sender::gather(Batch& batch) const noexcept {
  for (uint64_t slot = sent_; batch.slots < kBatchSlots && isPosted(slot); ++slot) {
    const link::SlotHeader& header = headerOf(slot);
    Head& head = batch.heads[batch.slots++];
    head.frame = {kFrameMagic, header.bytes, slot + 1, header.fingerprint};
    if (header.bytes <= link::kInlineBytes) {
      std::memcpy(head.inlined, header.inlined, header.bytes);
      batch.add(&head, sizeof(DataFrame) + header.bytes);
    } else {
      batch.add(&head, sizeof(DataFrame));
      batch.add(const_cast<std::byte*>(link::placeSent(fifo_, slot)), header.bytes);
    }
  }
  batch.skip(partial_);
}

// A list of one costs a small message a tenth of a microsecond.
ssize_t Sender::send(Batch& batch) const noexcept {
  constexpr int kHow = MSG_DONTWAIT | MSG_NOSIGNAL;
  if (batch.count == 1) return ::send(socket_, batch.parts[0].iov_base, batch.parts[0].iov_len, kHow);
  msghdr message{};
  message.msg_iov = batch.parts;
  message.msg_iovlen = batch.count;
  return ::sendmsg(socket_, &message, kHow);
}

StreamResult Sender::pump() noexcept {
  StreamResult result;
  while (pending()) {
    Batch batch;
    gather(batch);
    const ssize_t written = send(batch);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        result.fault = StreamFault::kSystem;
        result.errorNumber = errno;
      }
      return result;
    }
    result.moved = true;
    account(static_cast<size_t>(written));
    if (static_cast<size_t>(written) < batch.bytes) return result;
  }
  return result;
}

void Sender::account(size_t written) noexcept {
  partial_ += written;
  const uint64_t before = sent_;
  while (isPosted(sent_) && partial_ >= sizeof(DataFrame) + headerOf(sent_).bytes) {
    partial_ -= sizeof(DataFrame) + headerOf(sent_).bytes;
    ++sent_;
  }
  // Release: pairs with SendEnd::hasRoom; the slots have been read for the last time.
  if (sent_ != before) fifo_.released->value.store(sent_, std::memory_order_release);
}

}  // namespace tutti::transports
