// Frames over a non-blocking stream socket: magic, version, type, length, payload.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace tutti {

struct Frame {
  uint8_t type = 0;
  Bytes payload;
};

inline constexpr size_t kFrameHeaderBytes = 8;
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

// Takes frames from a socket, one at a time. Reads not one byte beyond the frame that it returns, so that the socket
// can change hands after any frame.
class FrameReader {
 public:
  enum class Status : uint8_t { kNothing, kFrame, kClosed, kBroken };
  explicit FrameReader(size_t maxBytes = kMaxFrameBytes) noexcept : maxBytes_(maxBytes) {}
  // kFrame: `frame` is the next one. kClosed: the peer closed between two frames. kBroken: see error(). Never blocks;
  // throws only std::bad_alloc.
  Status read(int fd, Frame& frame);
  const std::string& error() const noexcept { return error_; }

 private:
  Status readHeader(int fd);
  Status readPayload(int fd);
  Status broken(std::string why);

  size_t maxBytes_;
  std::array<std::byte, kFrameHeaderBytes> header_{};
  size_t headerHave_ = 0;
  Bytes payload_;
  size_t payloadHave_ = 0, payloadWanted_ = 0;
  std::string error_;
};

// Frames on their way out, in order. A payload may be queued on several sockets; it is not copied.
class FrameQueue {
 public:
  // Throws Error(kInvalidArgument) when the payload is longer than kMaxFrameBytes.
  void push(uint8_t type, std::shared_ptr<const Bytes> payload);
  bool empty() const noexcept { return waiting_.empty(); }
  // Hands the socket what it takes. False when the connection is broken. Never blocks.
  bool flush(int fd) noexcept;

 private:
  struct Item {
    std::array<std::byte, kFrameHeaderBytes> header;
    std::shared_ptr<const Bytes> payload;
    size_t bytes() const noexcept { return kFrameHeaderBytes + payload->size(); }
  };
  std::deque<Item> waiting_;
  size_t sent_ = 0;  // bytes of the first one
};

}  // namespace tutti
