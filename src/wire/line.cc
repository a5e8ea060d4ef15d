#include "wire/line.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/error.h"
#include "net/socket.h"

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kPartingTime(2);
// Of one line in a row, so that a busy neighbour does not keep the others waiting; epoll reports the rest again.
constexpr int kMostReads = 64;

HandshakeContext over(int fd, HandshakeContext context) noexcept {
  context.local = isUnix(fd);
  return context;
}

}  // namespace

std::shared_ptr<Line> Line::open(Reactor& reactor, UniqueFd fd, Handshake::Role role, const HandshakeContext& context,
                                 Events events) {
  std::shared_ptr<Line> line(new Line(reactor, std::move(fd), role, context, std::move(events)));
  // The reactor's handler keeps the line alive until it is closed.
  const uint32_t first = role == Handshake::Role::kClient ? EPOLLOUT : EPOLLIN;
  line->watch_ = reactor.watch(line->fd_.get(), first, [line](uint32_t ready) { line->onEvents(ready); });
  return line;
}

Line::Line(Reactor& reactor, UniqueFd fd, Handshake::Role role, const HandshakeContext& context, Events events)
    : reactor_(reactor),
      fd_(std::move(fd)),
      state_(role == Handshake::Role::kClient ? State::kConnecting : State::kHello),
      hello_(role, over(fd_.get(), context)),
      unix_(isUnix(fd_.get())),
      peer_(role == Handshake::Role::kServer ? describePeer(fd_.get()) : std::string()),
      events_(std::make_shared<Events>(std::move(events))) {
  in_.limit([this](uint8_t type) { return mostBytes(static_cast<Kind>(type), ranks_); });
}

void Line::want(uint32_t events) noexcept { reactor_.change(watch_, events); }

void Line::onEvents(uint32_t ready) {
  if ((ready & EPOLLIN) != 0) heard_ = Reactor::Clock::now();
  if (state_ == State::kConnecting) return connected();
  if (state_ == State::kHello) return continueHello();
  if ((ready & EPOLLOUT) != 0) flush();
  if (isOpen() && (ready & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
    state_ == State::kFinishing ? drainInput() : readFrames();
}

void Line::connected() {
  connectError_ = pendingError(fd_.get());
  if (connectError_ != 0) return broken(errnoText(connectError_));
  // A name is anyone's to take while its owner is not there.
  if (unix_ && !sameUser(fd_.get()))
    return broken("the Unix socket there belongs to another user: " + describePeer(fd_.get()));
  state_ = State::kHello;
  peer_ = describePeer(fd_.get());
  continueHello();
}

void Line::continueHello() {
  switch (hello_.advance(fd_.get())) {
    case Handshake::Status::kWantsRead:
      return want(EPOLLIN);
    case Handshake::Status::kWantsWrite:
      return want(EPOLLOUT);
    case Handshake::Status::kFailed:
      return broken(hello_.error());
    case Handshake::Status::kDone:
      break;
  }
  state_ = State::kFrames;
  decideSealing();
  want(EPOLLIN);
  const auto events = events_;
  if (events->ready) events->ready();
}

void Line::decideSealing() {
  sealed_ = !unix_ && hello_.peerEncrypts();
  if (!sealed_) return;
  const SessionKeys keys = hello_.keys(Handshake::Use::kControl);
  in_.unseal(Cipher(keys.kind, keys.receive));
  out_.seal(Cipher(keys.kind, keys.send));
}

void Line::readFrames() {
  for (int i = 0; i < kMostReads && isOpen() && state_ == State::kFrames; ++i) {
    Frame frame;
    const auto status = in_.read(fd_.get(), frame);
    if (status == FrameReader::Status::kNothing) return;
    if (status == FrameReader::Status::kClosed) return broken("connection closed");
    if (status == FrameReader::Status::kBroken)
      return broken(sealed_ && !events_->namesPeer ? fmt::format("{} ({})", in_.error(), peer_) : in_.error());
    if (static_cast<Kind>(frame.type) == Kind::kAlive) continue;
    const auto events = events_;
    if (events->frame) events->frame(frame);
  }
}

void Line::send(Kind kind, std::shared_ptr<const Bytes> payload) {
  if (!isOpen() || state_ == State::kFinishing || choked_) return;
  if (out_.bytes() > mostQueued_) return choke();
  const bool idle = out_.empty();
  said_ = Reactor::Clock::now();
  out_.push(static_cast<uint8_t>(kind), std::move(payload));
  if (idle && state_ == State::kFrames) flush();
}

// Whoever sends is in the middle of something, and hears of it later. The memory is free at once.
void Line::choke() {
  const std::string why = fmt::format("does not take what it is sent: {} MiB wait for it", out_.bytes() >> 20);
  reactor_.after(Reactor::Clock::duration::zero(), [line = shared_from_this(), why] {
    if (line->state_ != State::kFinishing) line->broken(why);
  });
  choked_ = true;
  out_.drop();
}

// A broken socket is reported by the reader, which first takes what the peer has still said. Where the error was one
// that passes, as when memory is short, the peer has to be told that nothing more comes, and then leaves.
void Line::flush() {
  if (!out_.flush(fd_.get())) ::shutdown(fd_.get(), SHUT_WR);
  want(out_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
  if (state_ == State::kFinishing && out_.empty()) ::shutdown(fd_.get(), SHUT_WR);
}

void Line::finish(std::function<void()> done) {
  if (!isOpen() || state_ != State::kFrames) {
    close();
    if (done) done();
    return;
  }
  state_ = State::kFinishing;
  done_ = std::move(done);
  finishTimer_ = reactor_.after(kPartingTime, [line = shared_from_this()] { line->finished(); });
  flush();
}

void Line::drainInput() {
  std::array<std::byte, 4096> waste;
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t n = ::recv(fd_.get(), waste.data(), waste.size(), 0);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    return finished();
  }
}

void Line::finished() noexcept {
  if (!isOpen()) return;
  const auto done = std::move(done_);
  close();
  if (done) done();
}

void Line::limitSilence(std::chrono::milliseconds span) noexcept {
  if (isOpen() && !unix_) tutti::limitSilence(fd_.get(), span);
}

void Line::broken(const std::string& why) {
  if (!isOpen()) return;
  const auto events = events_;
  close();
  if (events->closed) events->closed(why);
}

void Line::close() noexcept {
  if (!isOpen()) return;
  reactor_.cancel(finishTimer_);
  // The reactor's handler may be the last owner of this line.
  const auto self = shared_from_this();
  reactor_.forget(watch_);
  fd_.reset();
  out_.drop();
}

Bytes Line::wrap(std::span<const std::byte> secret) const {
  Bytes wrapped(secret.size() + noise::kTagBytes);
  noise::seal(hello_.keys(Handshake::Use::kSecret).send, 0, {}, secret, wrapped.data());
  return wrapped;
}

Bytes Line::unwrap(std::span<const std::byte> wrapped) const {
  Bytes secret(wrapped.size() < noise::kTagBytes ? 0 : wrapped.size() - noise::kTagBytes);
  if (!noise::open(hello_.keys(Handshake::Use::kSecret).receive, 0, {}, wrapped, secret.data()))
    throw Error(ErrorCode::kRemote, "a secret that was sealed for somebody else");
  return secret;
}

SecureSocket Line::take() noexcept {
  const auto self = shared_from_this();
  reactor_.forget(watch_);
  if (!drained()) {  // it would go on behind a part of a frame
    fd_.reset();
    return {};
  }
  SecureSocket socket{std::move(fd_), std::nullopt};
  if (sealed_) socket.keys = hello_.keys(Handshake::Use::kData);
  return socket;
}

}  // namespace tutti::control
