// Frames over a non-blocking stream socket: magic, version, type, length, payload. Sealed, the first eight bytes and
// the payload (unless it is empty) are a record each, followed by its tag: a length is believed only once it has
// opened.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "net/cipher.h"

namespace tutti {

struct Frame {
  uint8_t type = 0;
  Bytes payload;
};

inline constexpr size_t kFrameHeaderBytes = 8;
inline constexpr size_t kSealedHeaderBytes = kFrameHeaderBytes + Cipher::kTagBytes;
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

// Takes frames from a socket, one at a time. Reads not one byte beyond the frame that it returns, so that the socket
// can change hands after any frame. After what is no frame nothing else is one: it stays broken.
class FrameReader {
 public:
  enum class Status : uint8_t { kNothing, kFrame, kClosed, kBroken };
  explicit FrameReader(size_t maxBytes = kMaxFrameBytes) noexcept : maxBytes_(maxBytes) {}
  // The most bytes of payload that a frame of a type may have, where that is less.
  using Most = std::function<size_t(uint8_t type)>;
  void limit(Most most) { most_ = std::move(most); }
  // From the next frame on, all are sealed.
  void unseal(Cipher cipher) noexcept { cipher_ = std::move(cipher); }
  // kFrame: `frame` is the next one. kClosed: the peer closed between two frames. kBroken: see error(). Never blocks;
  // throws only std::bad_alloc.
  Status read(int fd, Frame& frame);
  const std::string& error() const noexcept { return error_; }
  // After kClosed or kBroken: the peer sent nothing wrong, it left.
  bool hungUp() const noexcept { return hungUp_; }

 private:
  Status readHeader(int fd);
  Status readPayload(int fd);
  Status checkHeader();
  Status openPayload();
  size_t mostBytes() const;
  Status broken(std::string why);
  Status closed() noexcept;
  Status left(bool inOrder);
  size_t headerBytes() const noexcept { return cipher_ ? kSealedHeaderBytes : kFrameHeaderBytes; }

  size_t maxBytes_;
  Most most_;
  std::optional<Cipher> cipher_;
  std::array<std::byte, kSealedHeaderBytes> header_{};
  size_t headerHave_ = 0;
  Bytes payload_;
  size_t payloadHave_ = 0, payloadWanted_ = 0;  // the tag included
  bool hungUp_ = false, broken_ = false;
  std::string error_;
};

// Frames on their way out, in order. A payload may be queued on several sockets; it is copied only to be sealed. After
// an error it takes and sends nothing any more: a part of a frame may be out, and what follows would be taken for the
// rest of it.
class FrameQueue {
 public:
  // Throws Error(kInvalidArgument) when the payload is longer than kMaxFrameBytes.
  void push(uint8_t type, std::shared_ptr<const Bytes> payload);
  // All that is still queued, and what follows, is sealed, for good: where the cipher has lost its key, it is an error
  // as one of the socket. Nothing may be half-way out.
  void seal(Cipher cipher) noexcept { cipher_ = std::move(cipher); }
  bool empty() const noexcept { return waiting_.empty(); }
  // All that was ever pushed is out.
  bool drained() const noexcept { return waiting_.empty() && !broken_; }
  // The memory that what is queued takes, about. A payload counts on each queue that has it.
  size_t bytes() const noexcept { return bytes_; }
  // Lets go of all that is queued, and takes nothing any more, as after an error.
  void drop() noexcept;
  // Hands the socket what it takes. False when the connection is broken, from then on. Never blocks; throws only
  // std::bad_alloc.
  bool flush(int fd);

 private:
  struct Item {
    std::array<std::byte, kSealedHeaderBytes> header;
    size_t headerBytes;
    std::shared_ptr<const Bytes> payload;
    size_t cost;  // of memory
    size_t bytes() const noexcept { return headerBytes + payload->size(); }
  };
  bool sealFirst();

  std::optional<Cipher> cipher_;
  bool broken_ = false;
  std::deque<Item> waiting_;
  size_t bytes_ = 0;  // sum of their costs
  size_t sent_ = 0;   // bytes of the first one
};

}  // namespace tutti
