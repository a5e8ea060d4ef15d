#include "transports/tcp/receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/tcp/frame.h"

namespace tutti::transports {

std::byte* Receiver::place() const noexcept {
  link::SlotHeader& line = header();
  return line.bytes <= link::kInlineBytes ? line.inlined
                                          : fifo_.slots + (arrived_ & (fifo_.depth - 1)) * size_t{fifo_.slotBytes};
}

StreamResult Receiver::pump() noexcept {
  StreamResult result;
  while (unpack(result) && wantsMore() && read(result)) {
  }
  unpack(result);
  if (ended_ && result.fault == StreamFault::kNone) endOfStream(result);
  return result;
}

// Makes slots of what has been read ahead. False after a bad frame.
bool Receiver::unpack(StreamResult& result) noexcept {
  for (;;) {
    if (result.fault != StreamFault::kNone) return false;
    if (!inPayload_) {
      if (end_ - begin_ < sizeof(Frame) || !hasFreeSlot()) return true;
      if (!beginSlot(result)) return false;
    }
    const size_t step = std::min(header().bytes - filled_, end_ - begin_);
    if (step != 0) std::memcpy(place() + filled_, ahead_.data() + begin_, step);
    begin_ += step;
    filled_ += step;
    if (filled_ < header().bytes) return true;
    inPayload_ = false;
    result.moved = true;
    // Release: pairs with RecvEnd::ready; header and payload are complete.
    header().sequence.store(arrived_ + 1, std::memory_order_release);
    ++arrived_;
  }
}

bool Receiver::beginSlot(StreamResult& result) noexcept {
  Frame frame;
  std::memcpy(&frame, ahead_.data() + begin_, sizeof frame);
  const auto refuse = [&](StreamFault fault, uint64_t seen, uint64_t right) {
    result.fault = fault;
    result.seen = seen;
    result.right = right;
    return false;
  };
  if (frame.magic != kFrameMagic) return refuse(StreamFault::kNoFrame, frame.magic, kFrameMagic);
  if (frame.bytes > fifo_.slotBytes) return refuse(StreamFault::kTooLong, frame.bytes, fifo_.slotBytes);
  if (frame.sequence != arrived_ + 1) return refuse(StreamFault::kOutOfOrder, frame.sequence, arrived_ + 1);
  begin_ += sizeof frame;
  header().fingerprint = frame.fingerprint;
  header().bytes = frame.bytes;
  filled_ = 0;
  inPayload_ = true;
  return true;
}

// Where the next bytes go: the rest of a payload and what follows it, or only the buffer.
int Receiver::destinations(iovec* parts) noexcept {
  int count = 0;
  size_t room = kAheadBytes;
  if (inPayload_) {
    const size_t rest = header().bytes - filled_;
    parts[count++] = {place() + filled_, rest};
    if (rest > kAheadBytes) room = kTrailingBytes;
  }
  parts[count++] = {ahead_.data() + end_, std::min(room, kAheadBytes - end_)};
  return count;
}

// One system call. True when there may be more to read.
bool Receiver::read(StreamResult& result) noexcept {
  if (begin_ != 0) {
    std::memmove(ahead_.data(), ahead_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  iovec parts[2];
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(destinations(parts));
  const size_t wanted = parts[0].iov_len + (message.msg_iovlen > 1 ? parts[1].iov_len : 0);
  const ssize_t n = ::recvmsg(socket_, &message, MSG_DONTWAIT);
  if (n > 0) {
    account(static_cast<size_t>(n));
    result.moved = true;
    return static_cast<size_t>(n) == wanted;
  }
  if (n == 0) {
    ended_ = true;
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    result.fault = StreamFault::kSystem;
    result.errorNumber = errno;
  }
  return false;
}

void Receiver::account(size_t bytes) noexcept {
  const size_t direct = inPayload_ ? std::min(bytes, header().bytes - filled_) : 0;
  filled_ += direct;
  end_ += bytes - direct;
}

void Receiver::endOfStream(StreamResult& result) noexcept {
  const bool waiting = end_ - begin_ >= sizeof(Frame) && !inPayload_;  // for a free slot
  if (result.moved || waiting || fifo_.released->value.load(std::memory_order_acquire) != arrived_) return;
  result.fault = inPayload_ || begin_ != end_ ? StreamFault::kTorn : StreamFault::kClosed;
}

}  // namespace tutti::transports
