// How slots lie on a TCP stream: in the clear, or as sealed records.
//
// In the clear a slot is its DataFrame and its payload. Sealed it is a head record of fixed size, in which a small
// payload travels too, and, for a larger one, a payload record; each is followed by its tag. So a small slot costs one
// record, and no length is believed before it has opened.
#pragma once
#include <cstring>

#include "net/cipher.h"
#include "transports/tcp/frame.h"

namespace tutti::transports {

struct Head {
  DataFrame frame;
  std::byte inlined[link::kInlineBytes];
};
static_assert(sizeof(Head) == 64);

// What a Receiver asks about the bytes that it takes from the stream.
struct ClearFraming {
  static constexpr bool kSealed = false;
  static constexpr size_t kHeadBytes = sizeof(DataFrame), kTailBytes = 0;
  static uint32_t behindHead(const DataFrame& frame) noexcept { return frame.bytes; }
  static bool openHead(const std::byte* wire, Head& head) noexcept {
    std::memcpy(&head.frame, wire, sizeof head.frame);
    return true;
  }
  static bool openPayload(std::byte*, size_t, const std::byte*) noexcept { return true; }
};

class SealedFraming {
 public:
  static constexpr bool kSealed = true;
  static constexpr size_t kTailBytes = Cipher::kTagBytes, kHeadBytes = sizeof(Head) + kTailBytes;
  explicit SealedFraming(const SessionKeys& keys) : cipher_(keys.kind, keys.receive) {}

  static uint32_t behindHead(const DataFrame& frame) noexcept {
    return frame.bytes <= link::kInlineBytes ? 0 : frame.bytes;
  }
  bool openHead(const std::byte* wire, Head& head) noexcept {
    return cipher_.open(reinterpret_cast<std::byte*>(&head), wire, sizeof head, wire + sizeof head);
  }
  // In place: the payload is where it is to stay.
  bool openPayload(std::byte* payload, size_t bytes, const std::byte* tag) noexcept {
    return cipher_.open(payload, payload, bytes, tag);
  }

 private:
  Cipher cipher_;
};

}  // namespace tutti::transports
