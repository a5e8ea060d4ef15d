#include "net/frame.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

constexpr std::byte kMagic0{'T'}, kMagic1{'f'}, kVersion{1};

// What a queued frame takes beside the bytes of its payload: its place in the queue, and two pieces of memory.
constexpr size_t kBesidePayload = 192;

constexpr const char* kForged =
    "a frame that fails its integrity check: bytes were changed, repeated or lost on the way";

std::array<std::byte, kSealedHeaderBytes> makeHeader(uint8_t type, size_t length) noexcept {
  std::array<std::byte, kSealedHeaderBytes> header{kMagic0, kMagic1, kVersion, std::byte{type}};
  const auto bytes = static_cast<uint32_t>(length);
  std::memcpy(header.data() + 4, &bytes, sizeof bytes);
  return header;
}

// What recv() said, in the reader's words: > 0 bytes, 0 nothing now, -1 closed, -2 broken.
ssize_t receive(int fd, std::byte* place, size_t bytes) noexcept {
  for (;;) {
    const ssize_t n = ::recv(fd, place, bytes, 0);
    if (n > 0) return n;
    if (n == 0) return -1;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -2;
  }
}

}  // namespace

FrameReader::Status FrameReader::broken(std::string why) {
  broken_ = true;
  error_ = std::move(why);
  return Status::kBroken;
}

FrameReader::Status FrameReader::closed() noexcept {
  hungUp_ = true;
  return Status::kClosed;
}

FrameReader::Status FrameReader::left(bool inOrder) {
  hungUp_ = true;
  return broken(inOrder ? "connection closed inside a frame" : "connection reset");
}

FrameReader::Status FrameReader::readHeader(int fd) {
  while (headerHave_ < headerBytes()) {
    const ssize_t n = receive(fd, header_.data() + headerHave_, headerBytes() - headerHave_);
    if (n == 0) return Status::kNothing;
    if (n < 0) return headerHave_ == 0 && n == -1 ? closed() : left(n == -1);
    headerHave_ += static_cast<size_t>(n);
  }
  return checkHeader();
}

size_t FrameReader::mostBytes() const {
  return most_ ? std::min(maxBytes_, most_(static_cast<uint8_t>(header_[3]))) : maxBytes_;
}

FrameReader::Status FrameReader::checkHeader() {
  std::byte* const head = header_.data();
  if (cipher_ && !cipher_->open(head, head, kFrameHeaderBytes, head + kFrameHeaderBytes)) return broken(kForged);
  if (header_[0] != kMagic0 || header_[1] != kMagic1) return broken("not a frame");
  if (header_[2] != kVersion) return broken("a frame of another version");
  uint32_t length = 0;
  std::memcpy(&length, header_.data() + 4, sizeof length);
  if (const size_t most = mostBytes(); length > most)
    return broken(
        fmt::format("a frame of type {} of {} bytes, {} are allowed", static_cast<int>(header_[3]), length, most));
  payloadWanted_ = length + (cipher_ && length > 0 ? Cipher::kTagBytes : 0);
  return Status::kFrame;
}

FrameReader::Status FrameReader::readPayload(int fd) {
  // Grows with what arrives, not with what was announced.
  constexpr size_t kGrowth = size_t{1} << 18;
  while (payloadHave_ < payloadWanted_) {
    if (payloadHave_ == payload_.size())
      payload_.resize(std::min(payloadWanted_, std::max(kGrowth, payload_.size() * 2)));
    const ssize_t n = receive(fd, payload_.data() + payloadHave_, payload_.size() - payloadHave_);
    if (n == 0) return Status::kNothing;
    if (n < 0) return left(n == -1);
    payloadHave_ += static_cast<size_t>(n);
  }
  return openPayload();
}

FrameReader::Status FrameReader::openPayload() {
  if (!cipher_ || payload_.empty()) return Status::kFrame;
  const size_t bytes = payload_.size() - Cipher::kTagBytes;
  std::byte* const data = payload_.data();
  if (!cipher_->open(data, data, bytes, data + bytes)) return broken(kForged);
  payload_.resize(bytes);
  return Status::kFrame;
}

FrameReader::Status FrameReader::read(int fd, Frame& frame) {
  if (broken_) return Status::kBroken;
  if (headerHave_ < headerBytes())
    if (const Status status = readHeader(fd); status != Status::kFrame) return status;
  if (const Status status = readPayload(fd); status != Status::kFrame) return status;
  frame.type = static_cast<uint8_t>(header_[3]);
  frame.payload = std::move(payload_);
  payload_.clear();
  headerHave_ = payloadHave_ = payloadWanted_ = 0;
  return Status::kFrame;
}

void FrameQueue::push(uint8_t type, std::shared_ptr<const Bytes> payload) {
  if (payload->size() > kMaxFrameBytes)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a control message of {} bytes is too long: at most {}", payload->size(), kMaxFrameBytes));
  if (broken_) return;
  const size_t bytes = payload->size(), cost = bytes + kBesidePayload;
  waiting_.push_back({makeHeader(type, bytes), kFrameHeaderBytes, std::move(payload), cost});
  bytes_ += cost;
}

// Only now, when its turn has come, so that what waits in many queues is stored once. False: it can not be sealed.
bool FrameQueue::sealFirst() {
  Item& first = waiting_.front();
  if (!cipher_ || first.headerBytes == kSealedHeaderBytes) return true;
  const size_t bytes = first.payload->size();
  const auto sealed = std::make_shared<Bytes>(bytes > 0 ? bytes + Cipher::kTagBytes : 0);
  std::byte* const head = first.header.data();
  if (!cipher_->seal(head, head + kFrameHeaderBytes, head, kFrameHeaderBytes)) return false;
  if (bytes > 0 && !cipher_->seal(sealed->data(), sealed->data() + bytes, first.payload->data(), bytes)) return false;
  first.headerBytes = kSealedHeaderBytes;
  first.payload = sealed;
  return true;
}

void FrameQueue::drop() noexcept {
  broken_ = true;
  waiting_.clear();
  bytes_ = 0;
}

bool FrameQueue::flush(int fd) {
  if (broken_) return false;
  while (!waiting_.empty()) {
    if (!sealFirst()) return drop(), false;
    Item& first = waiting_.front();
    const size_t headerSent = std::min(sent_, first.headerBytes), payloadSent = sent_ - headerSent;
    iovec parts[2] = {
        {first.header.data() + headerSent, first.headerBytes - headerSent},
        {const_cast<std::byte*>(first.payload->data()) + payloadSent, first.payload->size() - payloadSent}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n < 0) return drop(), false;
    sent_ += static_cast<size_t>(n);
    if (sent_ < first.bytes()) continue;
    bytes_ -= first.cost;
    waiting_.pop_front();
    sent_ = 0;
  }
  return true;
}

}  // namespace tutti
