#include "link/attempt_line.h"

#include "base/log.h"

namespace tutti::link {

void AttemptLine::put(std::span<const std::byte> blob) {
  meeting_.put(Writer().value(EdgeMessage::kBlob).value(attempt_).block(blob).take());
}

std::optional<Bytes> AttemptLine::poll() {
  if (blobs_.empty()) return std::nullopt;
  Bytes first = std::move(blobs_.front());
  blobs_.pop_front();
  return first;
}

void AttemptLine::requestStream(StreamKind kind) {
  ++requested_[static_cast<size_t>(kind)];
  meeting_.requestStream(kind);
}

std::optional<UniqueFd> AttemptLine::pollStream() {
  auto stream = meeting_.pollStream();
  if (stream) ++taken_;
  return stream;
}

bool AttemptLine::settle(const StreamCounts& requestedByPeer) {
  try {
    makeUp(requestedByPeer);
    while (outstanding() > 0) {
      if (!pollStream()) return false;
    }
  } catch (const Error& failure) {
    log::debug("a stream that is no longer needed could not be had: {}", failure.what());
  }
  return true;
}

void AttemptLine::makeUp(const StreamCounts& requestedByPeer) {
  for (size_t kind = 0; kind < kStreamKinds; ++kind)
    while (requested_[kind] < requestedByPeer[kind]) requestStream(static_cast<StreamKind>(kind));
}

int AttemptLine::outstanding() const noexcept { return requested_[0] + requested_[1] - taken_; }

}  // namespace tutti::link
