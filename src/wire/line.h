// One authenticated connection of the control plane: hello first, then frames, sealed when both ends want encryption
// and the connection is TCP (a Unix socket stays inside the host). Lives on one reactor's thread.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "net/frame.h"
#include "net/handshake.h"
#include "net/reactor.h"
#include "net/secure_socket.h"
#include "process/fd.h"
#include "wire/messages.h"

namespace tutti::control {

class Line : public std::enable_shared_from_this<Line> {
 public:
  // Called on the reactor's thread. None is called any more after close() or take().
  struct Events {
    std::function<void()> ready;  // the peer has proved the secret
    std::function<void(Frame&)> frame;
    std::function<void(const std::string& why)> closed;  // by the peer or by a failure; once
    bool namesPeer = false;                              // who is told says itself where the peer is
  };

  // `fd` is accepted (server) or being connected (client).
  static std::shared_ptr<Line> open(Reactor& reactor, UniqueFd fd, Handshake::Role role,
                                    const HandshakeContext& context, Events events);

  void setEvents(Events events) { events_ = std::make_shared<Events>(std::move(events)); }
  // Queues a frame and sends what the socket takes. After close() or finish() it is dropped. A peer that lets too much
  // wait (see expectRanks) is given up: the line closes, but not before this has returned.
  void send(Kind kind, std::shared_ptr<const Bytes> payload);
  void send(Kind kind, Bytes payload) { send(kind, std::make_shared<const Bytes>(std::move(payload))); }
  // At once; what is queued is lost.
  void close() noexcept;
  // Sends what is queued, then waits two seconds at most for the peer to close, then calls `done`. What still arrives
  // is dropped. Closing only after the peer has read everything keeps the system from throwing the last frames away.
  void finish(std::function<void()> done = {});
  // Gives the socket away, non-blocking, with nothing read beyond the last frame, and fresh keys if the line was
  // sealed. Needs drained(); without it the socket is closed, and what is returned has none.
  SecureSocket take() noexcept;
  // Of how many ranks what comes may speak, which bounds the length of frames (see mostBytes), and what goes, which
  // bounds how much of it may wait (see mostQueued). Until told: of one.
  void expectRanks(int theirs, int ours) noexcept { ranks_ = theirs, mostQueued_ = mostQueued(ours); }
  // Nothing is wrapped any more, nor the socket given away: the keys of the hello go.
  void forgetKeys() noexcept { hello_.forgetKeys(); }

  // A secret for the other end alone, sealed whether or not the line's frames are. Each end may wrap one.
  Bytes wrap(std::span<const std::byte> secret) const;
  Bytes unwrap(std::span<const std::byte> wrapped) const;  // throws Error(kRemote)

  bool isOpen() const noexcept { return static_cast<bool>(fd_); }
  bool takesFrames() const noexcept { return isOpen() && state_ == State::kFrames; }
  // All that was sent has gone to the system: never again after an error.
  bool drained() const noexcept { return out_.drained(); }
  int connectError() const noexcept { return connectError_; }  // an errno value; 0: none
  const std::string& peer() const noexcept { return peer_; }
  bool overUnix() const noexcept { return unix_; }
  // Whether the peer is who has that key, as far as the line can tell: a Unix socket tells only that it is the same
  // user.
  const noise::Key& peerKey() const noexcept { return hello_.peerKey(); }
  bool isFrom(const noise::Key& key) const noexcept { return unix_ || hello_.peerKey() == key; }
  // How long the system may try to get bytes across before it calls a connection over a network broken.
  void limitSilence(std::chrono::milliseconds span) noexcept;
  // When anything last came, a part of a frame included, and when a frame was last handed in to be sent.
  Reactor::Clock::time_point heard() const noexcept { return heard_; }
  Reactor::Clock::time_point said() const noexcept { return said_; }
  bool peerEncrypts() const noexcept { return hello_.peerEncrypts(); }  // once it has proved itself
  // How far the hello has come: a peer that has said nothing is at 0.
  int helloSteps() const noexcept { return hello_.messagesDone(); }
  bool unproven() const noexcept { return hello_.unproven(); }  // the two ends' secrets, or jobs, differ
  // The peer said nothing wrong, it left.
  bool hungUp() const noexcept { return hello_.hungUp() || in_.hungUp(); }
  // It was given up, since it did not take what it was sent.
  bool choked() const noexcept { return choked_; }

 private:
  enum class State : uint8_t { kConnecting, kHello, kFrames, kFinishing };

  Line(Reactor& reactor, UniqueFd fd, Handshake::Role role, const HandshakeContext& context, Events events);
  void onEvents(uint32_t ready);
  void connected();
  void continueHello();
  void decideSealing();
  void readFrames();
  void drainInput();
  void flush();
  void choke();
  void broken(const std::string& why);
  void finished() noexcept;
  void want(uint32_t events) noexcept;

  Reactor& reactor_;
  UniqueFd fd_;
  Reactor::Token watch_ = 0, finishTimer_ = 0;
  State state_;
  Handshake hello_;
  FrameReader in_;
  FrameQueue out_;
  bool unix_ = false;
  bool sealed_ = false;  // decided when the hello is done, once
  bool choked_ = false;
  int ranks_ = 1;
  size_t mostQueued_ = mostQueued(1);
  int connectError_ = 0;
  Reactor::Clock::time_point heard_ = Reactor::Clock::now(), said_ = heard_;
  std::string peer_;
  std::shared_ptr<Events> events_;
  std::function<void()> done_;
};

}  // namespace tutti::control
