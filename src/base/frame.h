// Frames over a non-blocking stream socket: magic, version, type, length, payload. Sealed, the first eight bytes and
// the payload (unless it is empty) are a record each, followed by its tag: a length is believed only once it has
// opened.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/cipher.h"

namespace tutti {

struct Frame {
  uint8_t type = 0;
  Bytes payload;
};

inline constexpr size_t kFrameHeaderBytes = 8;
inline constexpr size_t kSealedHeaderBytes = kFrameHeaderBytes + Cipher::kTagBytes;
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

// Takes frames from a socket, one at a time. Reads not one byte beyond the frame that it returns, so that the socket
// can change hands after any frame.
class FrameReader {
 public:
  enum class Status : uint8_t { kNothing, kFrame, kClosed, kBroken };
  explicit FrameReader(size_t maxBytes = kMaxFrameBytes) noexcept : maxBytes_(maxBytes) {}
  // From the next frame on, all are sealed.
  void unseal(Cipher cipher) noexcept { cipher_ = std::move(cipher); }
  // kFrame: `frame` is the next one. kClosed: the peer closed between two frames. kBroken: see error(). Never blocks;
  // throws only std::bad_alloc.
  Status read(int fd, Frame& frame);
  const std::string& error() const noexcept { return error_; }

 private:
  Status readHeader(int fd);
  Status readPayload(int fd);
  Status checkHeader();
  Status openPayload();
  Status broken(std::string why);
  size_t headerBytes() const noexcept { return cipher_ ? kSealedHeaderBytes : kFrameHeaderBytes; }

  size_t maxBytes_;
  std::optional<Cipher> cipher_;
  std::array<std::byte, kSealedHeaderBytes> header_{};
  size_t headerHave_ = 0;
  Bytes payload_;
  size_t payloadHave_ = 0, payloadWanted_ = 0;  // the tag included
  std::string error_;
};

// Frames on their way out, in order. A payload may be queued on several sockets; it is copied only to be sealed.
class FrameQueue {
 public:
  // Throws Error(kInvalidArgument) when the payload is longer than kMaxFrameBytes.
  void push(uint8_t type, std::shared_ptr<const Bytes> payload);
  // All that is still queued, and what follows, is sealed; nothing may be half-way out.
  void seal(Cipher cipher) noexcept { cipher_ = std::move(cipher); }
  bool empty() const noexcept { return waiting_.empty(); }
  // Hands the socket what it takes. False when the connection is broken. Never blocks; throws only std::bad_alloc.
  bool flush(int fd);

 private:
  struct Item {
    std::array<std::byte, kSealedHeaderBytes> header;
    size_t headerBytes;
    std::shared_ptr<const Bytes> payload;
    size_t bytes() const noexcept { return headerBytes + payload->size(); }
  };
  void sealFirst();

  std::optional<Cipher> cipher_;
  std::deque<Item> waiting_;
  size_t sent_ = 0;  // bytes of the first one
};

}  // namespace tutti
