#include "link/negotiation_channel.h"

#include <fmt/format.h>

#include "base/error.h"
#include "process/log.h"

namespace tutti::link {

void NegotiationChannel::put(std::span<const std::byte> blob) {
  if (!said_.isModest(blob.size()))
    throw Error(ErrorCode::kSystem,
                fmt::format("it says more to its other end than a set-up takes: {} blobs of {} KiB, {} KiB in all",
                            Spoken::kMostBlobs, Spoken::kMostBlobBytes >> 10, Spoken::kMostBytes >> 10));
  oob_.put(Writer().value(EdgeMessage::kBlob).value(attempt_).block(blob).take());
}

std::optional<Bytes> NegotiationChannel::poll() {
  if (blobs_.empty()) return std::nullopt;
  Bytes first = std::move(blobs_.front());
  blobs_.pop_front();
  return first;
}

void NegotiationChannel::requestStream(StreamKind kind) {
  ++asked_.counts[static_cast<size_t>(kind)];
  try {
    oob_.requestStream(kind);
  } catch (...) {  // no memory: the peer would wait for it
    asked_.refused = true;
    throw;
  }
}

std::optional<SecureSocket> NegotiationChannel::pollStream() {
  try {
    auto stream = oob_.pollStream();
    if (stream) ++taken_;
    return stream;
  } catch (...) {
    asked_.refused = true;
    throw;
  }
}

bool NegotiationChannel::settle(const StreamsAsked& askedByPeer) {
  try {
    makeUp(askedByPeer);
    while (outstanding() > 0 && !asked_.refused && !askedByPeer.refused) {
      if (!pollStream()) return false;
    }
  } catch (const Error& failure) {
    log::debug("a stream that is no longer needed could not be had: {}", failure.what());
  }
  return true;
}

void NegotiationChannel::makeUp(const StreamsAsked& askedByPeer) {
  for (size_t kind = 0; kind < kStreamKinds; ++kind)
    while (asked_.counts[kind] < askedByPeer.counts[kind]) requestStream(static_cast<StreamKind>(kind));
}

int NegotiationChannel::outstanding() const noexcept { return asked_.counts[0] + asked_.counts[1] - taken_; }

}  // namespace tutti::link
