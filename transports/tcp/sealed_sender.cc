#include "transports/tcp/sealed_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transports/tcp/framing.h"

namespace tutti::transports {
namespace {

// Enough for a batch of small slots; one large slot has a batch of its own.
constexpr size_t kSmallBatchBytes = 16 << 10;

constexpr size_t recordBytes(uint32_t payload) noexcept {
  const size_t behind = payload <= link::kInlineBytes ? 0 : payload + SealedFraming::kTailBytes;
  return SealedFraming::kHeadBytes + behind;
}

}  // namespace

SealedSender::SealedSender(int socket, const link::Fifo& fifo, const SessionKeys& keys)
    : socket_(socket),
      fifo_(fifo),
      cipher_(keys.kind, keys.send),
      capacity_(std::max(kSmallBatchBytes, recordBytes(fifo.slotBytes))),
      wire_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}

StreamResult SealedSender::pump() noexcept {
  StreamResult result;
  while (pending()) {
    if (batch_ == 0 && !sealBatch()) {
      result.fault = StreamFault::kUnsealed;
      return result;
    }
    const size_t rest = filled_ - written_;
    const ssize_t n = ::send(socket_, wire_.get() + written_, rest, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        result.fault = StreamFault::kSystem;
        result.errorNumber = errno;
      }
      return result;
    }
    result.moved = true;
    account(static_cast<size_t>(n));
    if (static_cast<size_t>(n) < rest) return result;
  }
  return result;
}

// False: a slot can not be sealed. Those before it are left out as well.
bool SealedSender::sealBatch() noexcept {
  filled_ = written_ = 0;
  first_ = sent_;
  for (uint64_t slot = sent_; batch_ < kBatchSlots && isPosted(slot); ++slot) {
    if (filled_ + recordBytes(headerOf(slot).bytes) > capacity_) return true;
    if (!seal(slot)) {
      batch_ = 0;
      return false;
    }
    ends_[batch_++] = filled_;
  }
  return true;
}

bool SealedSender::seal(uint64_t slot) noexcept {
  const link::SlotHeader& header = headerOf(slot);
  Head head{};
  head.frame = {kFrameMagic, header.bytes, slot + 1, header.fingerprint};
  const bool small = header.bytes <= link::kInlineBytes;
  if (small) std::memcpy(head.inlined, header.inlined, header.bytes);
  std::byte* place = wire_.get() + filled_;
  if (!cipher_.seal(place, place + sizeof head, reinterpret_cast<const std::byte*>(&head), sizeof head)) return false;
  place += SealedFraming::kHeadBytes;
  if (!small) {
    if (!cipher_.seal(place, place + header.bytes, link::placeSent(fifo_, slot), header.bytes)) return false;
  }
  filled_ += recordBytes(header.bytes);
  return true;
}

void SealedSender::account(size_t written) noexcept {
  written_ += written;
  const uint64_t before = sent_;
  while (sent_ - first_ < batch_ && written_ >= ends_[sent_ - first_]) ++sent_;
  if (sent_ - first_ == batch_) batch_ = 0;
  // Release: pairs with SendEnd::hasRoom; the slots have been read for the last time.
  if (sent_ != before) fifo_.released->value.store(sent_, std::memory_order_release);
}

}  // namespace tutti::transports
