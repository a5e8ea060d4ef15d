#include "transports/tcp/receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::transports {

template <class Framing>
std::byte* Receiver<Framing>::slot() const noexcept {
  link::SlotHeader& line = header();
  return line.bytes <= link::kInlineBytes ? line.inlined : longSlot();
}

template <class Framing>
void Receiver<Framing>::land(const link::Landing& landing) noexcept {
  landing_ = landing;
  if (inPayload_ && to_ == nullptr) landIfItIsThat();
}

// Of the slot whose head has been read.
template <class Framing>
void Receiver<Framing>::landIfItIsThat() noexcept {
  const link::SlotHeader& line = header();
  if (landing_.to == nullptr || landing_.slot != arrived_ || line.bytes != landing_.bytes ||
      line.fingerprint != landing_.fingerprint || line.bytes <= link::kInlineBytes)
    return;
  if (filled_ != 0) std::memcpy(landing_.to, slot(), filled_);
  to_ = landing_.to;
}

template <class Framing>
void Receiver<Framing>::stopLanding() noexcept {
  landing_.to = nullptr;
  if (to_ != nullptr && filled_ != 0) std::memcpy(slot(), to_, filled_);
  to_ = nullptr;
}

template <class Framing>
StreamResult Receiver<Framing>::pump() noexcept {
  StreamResult result;
  landed_ = false;
  // Behind a payload that has landed comes one that will, once its place is known: it waits in the socket until then.
  while (unpack(result) && !landed_ && wantsMore() && read(result)) {
  }
  unpack(result);
  if (ended_ && result.fault == StreamFault::kNone) endOfStream(result);
  return result;
}

// Makes slots of what has been read ahead. False after a bad frame.
template <class Framing>
bool Receiver<Framing>::unpack(StreamResult& result) noexcept {
  for (;;) {
    if (result.fault != StreamFault::kNone) return false;
    if (!inPayload_) {
      if (end_ - begin_ < Framing::kHeadBytes || !hasFreeSlot()) return true;
      if (!beginSlot(result)) return false;
    }
    const size_t step = std::min(following_ - filled_, end_ - begin_);
    if (step != 0) std::memcpy(place() + filled_, ahead_.data() + begin_, step);
    begin_ += step;
    filled_ += step;
    if (filled_ < following_ || end_ - begin_ < tailBytes()) return true;
    if (!endSlot(result)) return false;
    result.moved = true;
    // Release: pairs with RecvEnd::ready; header and payload are complete.
    header().sequence.store(arrived_ + 1, std::memory_order_release);
    ++arrived_;
  }
}

template <class Framing>
bool Receiver<Framing>::beginSlot(StreamResult& result) noexcept {
  Head head;
  if (!framing_.openHead(ahead_.data() + begin_, head)) {
    result.fault = StreamFault::kForged;
    return false;
  }
  const DataFrame& frame = head.frame;
  const auto refuse = [&](StreamFault fault, uint64_t seen, uint64_t right) {
    result.fault = fault;
    result.seen = seen;
    result.right = right;
    return false;
  };
  if (frame.magic != kFrameMagic) return refuse(StreamFault::kNoFrame, frame.magic, kFrameMagic);
  if (frame.bytes > fifo_.slotBytes) return refuse(StreamFault::kTooLong, frame.bytes, fifo_.slotBytes);
  if (frame.sequence != arrived_ + 1) return refuse(StreamFault::kOutOfOrder, frame.sequence, arrived_ + 1);
  begin_ += Framing::kHeadBytes;
  header().fingerprint = frame.fingerprint;
  header().bytes = frame.bytes;
  following_ = Framing::behindHead(frame);
  if (Framing::kSealed && following_ == 0) std::memcpy(header().inlined, head.inlined, frame.bytes);
  filled_ = 0;
  inPayload_ = true;
  landIfItIsThat();
  return true;
}

// The payload is complete, and so is its tag.
template <class Framing>
bool Receiver<Framing>::endSlot(StreamResult& result) noexcept {
  if (following_ > 0 && !framing_.openPayload(place(), following_, ahead_.data() + begin_)) {
    result.fault = StreamFault::kForged;
    return false;
  }
  begin_ += tailBytes();
  inPayload_ = false;
  landed_ = landed_ || to_ != nullptr;
  header().carried = to_ != nullptr ? link::PayloadLocation::kAtReceiver : link::PayloadLocation::kInSlot;
  if (landing_.slot == arrived_) landing_.to = nullptr;
  to_ = nullptr;
  return true;
}

// As long as it was said to be, or as the one before.
template <class Framing>
auto Receiver<Framing>::guess() const noexcept -> Guess {
  if (inPayload_ || end_ >= Framing::kHeadBytes) return {};
  const bool told = landing_.slot == arrived_ && landing_.bytes != 0;
  const uint32_t bytes = std::min({told ? landing_.bytes : following_, fifo_.slotBytes, slots::kBytes});
  if (bytes < std::min(fifo_.slotBytes, slots::kBytes) / kLeastGuessed) return {};
  return {told && landing_.to != nullptr ? landing_.to : longSlot(), bytes};
}

// Where the next bytes go: the rest of a payload and what follows it, or a head and what it is likely to bring, or only
// the buffer.
template <class Framing>
int Receiver<Framing>::destinations(const Guess& guess, iovec* parts) noexcept {
  if (guess.to != nullptr) {
    parts[0] = {ahead_.data() + end_, Framing::kHeadBytes - end_};
    parts[1] = {guess.to, guess.bytes};
    parts[2] = {ahead_.data() + Framing::kHeadBytes, kTrailingBytes};
    return 3;
  }
  int count = 0;
  size_t room = kAheadBytes;
  if (inPayload_ && filled_ < following_) {
    const size_t rest = following_ - filled_;
    parts[count++] = {place() + filled_, rest};
    if (rest > kAheadBytes || to_ != nullptr) room = kTrailingBytes;
  }
  parts[count++] = {ahead_.data() + end_, std::min(room, kAheadBytes - end_)};
  return count;
}

template <class Framing>
ssize_t Receiver<Framing>::receive(iovec* parts, int count) const noexcept {
  if (count == 1) return ::recv(socket_, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT);
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = static_cast<size_t>(count);
  return ::recvmsg(socket_, &message, MSG_DONTWAIT);
}

// One system call. True when there may be more to read.
template <class Framing>
bool Receiver<Framing>::read(StreamResult& result) noexcept {
  if (begin_ != 0) {
    std::memmove(ahead_.data(), ahead_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ >= kAheadBytes) return true;  // full of slots, for which there is room by now
  const Guess guessed = guess();
  iovec parts[3]{};
  const ssize_t n = receive(parts, destinations(guessed, parts));
  const size_t wanted = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
  if (n > 0) {
    result.moved = true;
    const auto bytes = static_cast<size_t>(n);
    if (guessed.to != nullptr) return takeGuessed(bytes, guessed, result) && bytes == wanted;
    account(bytes);
    return bytes == wanted;
  }
  if (n == 0) {
    ended_ = true;
  } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
    result.fault = StreamFault::kSystem;
    result.errorNumber = errno;
  }
  return false;
}

// What was read to the place of a payload that is none of that place, or is shorter, belongs behind its head. False
// after a bad frame.
template <class Framing>
bool Receiver<Framing>::takeGuessed(size_t bytes, const Guess& guess, StreamResult& result) noexcept {
  const size_t head = std::min(bytes, Framing::kHeadBytes - end_);
  end_ += head;
  if (end_ < Framing::kHeadBytes) return true;
  if (!beginSlot(result)) return false;
  const size_t there = std::min(bytes - head, guess.bytes), behind = bytes - head - there;
  std::byte* const next = ahead_.data() + begin_;
  end_ += behind;
  if (place() == guess.to && following_ >= there) {
    filled_ = there;
    return true;
  }
  std::memmove(next + there, next, behind);
  std::memcpy(next, guess.to, there);
  end_ += there;
  return true;
}

template <class Framing>
void Receiver<Framing>::account(size_t bytes) noexcept {
  const size_t direct = inPayload_ ? std::min(bytes, following_ - filled_) : 0;
  filled_ += direct;
  end_ += bytes - direct;
}

template <class Framing>
void Receiver<Framing>::endOfStream(StreamResult& result) noexcept {
  const bool waiting = end_ - begin_ >= Framing::kHeadBytes && !inPayload_;  // for a free slot
  if (result.moved || waiting || fifo_.released->value.load(std::memory_order_acquire) != arrived_) return;
  result.fault = inPayload_ || begin_ != end_ ? StreamFault::kTorn : StreamFault::kClosed;
}

template class Receiver<ClearFraming>;
template class Receiver<SealedFraming>;

}  // namespace tutti::transports
