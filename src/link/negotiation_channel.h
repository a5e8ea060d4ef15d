// One attempt's share of an edge's meeting.
//
// Two ends need not notice at the same time that an attempt is over. So every blob carries the attempt's number, and
// the streams asked for are counted: a stream that one end still waits for is asked for by the other as well, taken
// and dropped, so that the next attempt never gets a stream that was meant for this one.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/bytes.h"
#include "link/transport.h"

namespace tutti::link {

enum class EdgeMessage : uint8_t { kHello = 1, kBlob, kVerdict };

inline constexpr size_t kStreamKinds = 2;

// What one end asked for during an attempt.
struct StreamsAsked {
  std::array<uint8_t, kStreamKinds> counts{};
  bool refused = false;  // one could not be had, so that the other end may wait for its counterpart in vain
};

// What one end has said during an attempt: a few blobs of some hundred bytes are what a transport needs. Who says more
// fails the attempt, before the peer takes it for a stranger.
class Spoken {
 public:
  static constexpr size_t kMostBlobs = 256, kMostBlobBytes = size_t{64} << 10, kMostBytes = size_t{1} << 20;
  // Counts one more, and whether it still may be said.
  bool isModest(size_t blobBytes) noexcept {
    bytes_ += blobBytes;
    return ++blobs_ <= kMostBlobs && blobBytes <= kMostBlobBytes && bytes_ <= kMostBytes;
  }

 private:
  size_t blobs_ = 0, bytes_ = 0;
};

class NegotiationChannel : public OobChannel {
 public:
  NegotiationChannel(OobChannel& oob, uint32_t attempt) : oob_(oob), attempt_(attempt) {}

  // Throws Error(kSystem) where that is more than a set-up takes.
  void put(std::span<const std::byte> blob) override;
  std::optional<Bytes> poll() override;
  void requestStream(StreamKind kind) override;
  std::optional<SecureSocket> pollStream() override;

  uint32_t attempt() const noexcept { return attempt_; }
  void arrived(Bytes blob) { blobs_.push_back(std::move(blob)); }
  const StreamsAsked& asked() const noexcept { return asked_; }
  // After the attempt: asks for what only the peer has asked for, and drops what comes. True once nothing is
  // outstanding that can still come. Never throws for a stream that cannot be had.
  bool settle(const StreamsAsked& askedByPeer);

 private:
  void makeUp(const StreamsAsked& askedByPeer);
  int outstanding() const noexcept;

  OobChannel& oob_;
  uint32_t attempt_;
  std::deque<Bytes> blobs_;
  Spoken said_;
  StreamsAsked asked_;
  int taken_ = 0;
};

}  // namespace tutti::link
