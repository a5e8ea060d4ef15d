#include "support/oob_pair.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/error.h"
#include "base/random.h"

namespace tutti::test {
namespace {

UniqueFd listenOnLoopback(sockaddr_in& address) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (!listener || ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw systemError("cannot listen on the loopback device", errno);
  return listener;
}

}  // namespace

std::pair<UniqueFd, UniqueFd> tcpPair() {
  sockaddr_in address{};
  const UniqueFd listener = listenOnLoopback(address);
  UniqueFd dialled(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(dialled.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw systemError("cannot connect over the loopback device", errno);
  UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted) throw systemError("cannot accept over the loopback device", errno);
  return {std::move(dialled), std::move(accepted)};
}

std::pair<UniqueFd, UniqueFd> unixPair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw systemError("cannot make a pair", errno);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void MeetingRoom::refuse(link::StreamKind kind, std::string why) {
  const std::lock_guard lock(mutex_);
  refused_[kind] = std::move(why);
}

size_t MeetingRoom::streamsMade() const {
  const std::lock_guard lock(mutex_);
  return streamsMade_;
}

void MeetingRoom::match(size_t request) {
  if (request >= sides_[0].requests.size() || request >= sides_[1].requests.size()) return;
  const link::StreamKind kind = sides_[0].requests[request];
  if (sides_[1].requests[request] != kind) throw Error(ErrorCode::kInternal, "the ends ask for different streams");
  if (refused_.contains(kind)) return;
  ++streamsMade_;
  auto [first, second] = kind == link::StreamKind::kTcp ? makeTcpPair() : unixPair();
  std::optional<SessionKeys> far;
  const bool sealed = keys_ && kind == link::StreamKind::kTcp;
  if (sealed) {
    far = keys_;
    std::swap(far->send, far->receive);
  }
  sides_[0].streams[request] = {std::move(first), sealed ? keys_ : std::nullopt};
  sides_[1].streams[request] = {std::move(second), far};
}

std::pair<UniqueFd, UniqueFd> MeetingRoom::makeTcpPair() {
  if (!tamper_) return tcpPair();
  InterceptedPair pair(*tamper_);
  interlopers_.push_back(std::move(pair.interloper));
  return {std::move(pair.left), std::move(pair.right)};
}

void MeetingRoom::seal(CipherKind kind) {
  const std::lock_guard lock(mutex_);
  keys_.emplace();
  keys_->kind = kind;
  fillRandom(keys_->send.data(), keys_->send.size());
  fillRandom(keys_->receive.data(), keys_->receive.size());
}

void MeetingRoom::intercept(Tamper tamper) {
  const std::lock_guard lock(mutex_);
  tamper_ = tamper;
}

void MeetingEnd::put(std::span<const std::byte> blob) {
  const std::lock_guard lock(room_->mutex_);
  room_->sides_[1 - side_].mail.emplace_back(blob.begin(), blob.end());
}

std::optional<Bytes> MeetingEnd::poll() {
  const std::lock_guard lock(room_->mutex_);
  auto& mail = room_->sides_[side_].mail;
  if (mail.empty()) return std::nullopt;
  Bytes first = std::move(mail.front());
  mail.erase(mail.begin());
  return first;
}

void MeetingEnd::requestStream(link::StreamKind kind) {
  const std::lock_guard lock(room_->mutex_);
  auto& requests = room_->sides_[side_].requests;
  requests.push_back(kind);
  room_->match(requests.size() - 1);
}

std::optional<SecureSocket> MeetingEnd::pollStream() {
  const std::lock_guard lock(room_->mutex_);
  auto& side = room_->sides_[side_];
  if (side.requests.empty()) return std::nullopt;
  if (const auto refused = room_->refused_.find(side.requests.back()); refused != room_->refused_.end())
    throw Error(ErrorCode::kSystem, refused->second);
  auto stream = side.streams.extract(side.requests.size() - 1);
  if (stream.empty()) return std::nullopt;
  return std::move(stream.mapped());
}

}  // namespace tutti::test
