#include "transports/shm/fd_exchange.h"

#include "base/error.h"
#include "process/pass_fd.h"

namespace tutti::transports {

bool FdExchange::advance() {
  if (sent_ < sizeof out_) send();
  if (received_ < sizeof in_) receive();
  return sent_ == sizeof out_ && received_ == sizeof in_;
}

void FdExchange::send() {
  const auto rest = std::as_bytes(std::span(&out_, 1)).subspan(sent_);
  sent_ += sendWithFds(stream_.get(), rest, sent_ == 0 ? std::span<const int>(outFds_) : std::span<const int>());
}

void FdExchange::receive() {
  const auto rest = std::as_writable_bytes(std::span(&in_, 1)).subspan(received_);
  received_ += receiveWithFds(stream_.get(), rest, kMaxFds, inFds_);
  if (inFds_.size() > kMaxFds) throw Error(ErrorCode::kRemote, "the peer passed more descriptors than an edge has");
}

}  // namespace tutti::transports
