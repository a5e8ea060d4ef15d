// Peers of a rank under test that have passed the hello, and then say whatever the input makes them say. All over Unix
// sockets, within this process; the rank runs beside them (fuzz/running.h), and ends when it is told to.
#pragma once
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/descriptors.h"
#include "fuzz/input.h"
#include "fuzz/running.h"
#include "job/parcel.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "net/socket.h"
#include "support/patience.h"
#include "wire/messages.h"

namespace tutti::fuzz {

// One connection in the hands of the input.
class Hostile {
 public:
  Hostile(UniqueFd fd, Handshake::Role role, HandshakeContext context) : fd_(std::move(fd)) {
    context.local = true;
    Handshake hello(role, context);
    const auto deadline = Deadline::in(test::longWait());
    for (Handshake::Status status = hello.advance(fd_.get()); status != Handshake::Status::kDone;) {
      const bool reads = status == Handshake::Status::kWantsRead;
      if (status == Handshake::Status::kFailed || !awaitEvents(fd_.get(), reads ? POLLIN : POLLOUT, deadline)) {
        fd_.reset();
        return;
      }
      status = hello.advance(fd_.get());
    }
    wrapping_ = hello.keys(Handshake::Use::kSecret).send;
  }
  static Hostile call(const std::string& unixName, const HandshakeContext& context) {
    return {dialUnix(unixName), Handshake::Role::kClient, context};
  }

  bool isOpen() const noexcept { return static_cast<bool>(fd_); }
  void say(control::Kind kind, Bytes payload) {
    if (!isOpen()) return;
    mayBeTaken_ = mayBeTaken_ || kind == control::Kind::kStream;
    spoke_ = true;
    out_.push(static_cast<uint8_t>(kind), std::make_shared<const Bytes>(std::move(payload)));
    (void)out_.flush(fd_.get());
  }
  // The same frame many times, until the rank has taken all of them, or will not.
  void flood(control::Kind kind, const Bytes& payload, int times, const Running& rank) {
    Writer one;
    one.value('T').value('f').value<uint8_t>(1).value(kind).block(payload);
    const Bytes frame = one.take();
    Bytes all;
    for (; times > 0; --times) all.insert(all.end(), frame.begin(), frame.end());
    for (size_t sent = 0; isOpen() && sent < all.size() && !rank.over();) {
      const ssize_t n = ::send(fd_.get(), all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<size_t>(n);
      if (n > 0) continue;
      if (ended()) return fd_.reset();
      awaitEvents(fd_.get(), POLLIN | POLLOUT, Deadline::in(std::chrono::milliseconds(10)));
    }
  }
  void write(std::span<const std::byte> bytes) {
    mayBeTaken_ = mayBeTaken_ || !spoke_;
    if (isOpen() && !bytes.empty()) (void)::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // As a root hands a secret over.
  Bytes wrap(std::span<const std::byte> secret) const {
    Bytes wrapped(secret.size() + noise::kTagBytes);
    noise::seal(wrapping_, 0, {}, secret, wrapped.data());
    return wrapped;
  }
  // The next frame of that kind; others before it are skipped. None when the rank hangs up.
  std::optional<Frame> hear(control::Kind kind) {
    const auto deadline = Deadline::in(test::longWait());
    while (isOpen()) {
      Frame frame;
      const auto status = in_.read(fd_.get(), frame);
      if (status == FrameReader::Status::kFrame && static_cast<control::Kind>(frame.type) == kind) return frame;
      if (status == FrameReader::Status::kFrame) continue;
      if (status != FrameReader::Status::kNothing || !awaitEvents(fd_.get(), POLLIN, deadline)) break;
    }
    return std::nullopt;
  }
  // What has come by now.
  std::optional<Frame> heard() {
    Frame frame;
    if (!isOpen() || in_.read(fd_.get(), frame) != FrameReader::Status::kFrame) return std::nullopt;
    return frame;
  }
  void close() noexcept { fd_.reset(); }
  // Hangs up. A rank that goes on must close its end as well, unless it has taken the socket for a stream.
  void part(const Running& rank) {
    if (!isOpen()) return;
    ::shutdown(fd_.get(), SHUT_WR);
    const auto deadline = Deadline::in(test::longWait());
    while (!mayBeTaken_ && !rank.over() && !ended()) {
      require(!deadline.passed());
      awaitEvents(fd_.get(), POLLIN, Deadline::in(std::chrono::milliseconds(10)));
    }
    fd_.reset();
  }

 private:
  // The rank's words are of no use; but it must not wait for room.
  bool ended() const noexcept {
    std::byte waste[4096];
    for (;;) {
      const ssize_t n = ::recv(fd_.get(), waste, sizeof waste, 0);
      if (n > 0) continue;
      return n == 0 || (errno != EAGAIN && errno != EINTR);
    }
  }

  UniqueFd fd_;
  FrameReader in_;
  FrameQueue out_;
  CipherKey wrapping_{};
  bool spoke_ = false, mayBeTaken_ = false;
};

// Where a hostile rank, or root, is called.
class Door {
 public:
  explicit Door(std::string name) : name_(std::move(name)), fd_(listenUnix(name_)) { require(static_cast<bool>(fd_)); }
  const std::string& name() const noexcept { return name_; }
  std::optional<Hostile> open(const HandshakeContext& context, Deadline deadline) const {
    if (!awaitEvents(fd_.get(), POLLIN, deadline)) return std::nullopt;
    UniqueFd caller(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!caller) return std::nullopt;
    return Hostile(std::move(caller), Handshake::Role::kServer, context);
  }

 private:
  std::string name_;
  UniqueFd fd_;
};

inline Bytes toBytes(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

// --- what frames say, of the input: so that most are understood, and every field is anything ---

inline control::RankAddress personFrom(Input& in) {
  control::RankAddress who;
  who.rank = in.take<int8_t>();
  who.host = in.text(in.take<uint8_t>() % 8);
  who.endpoint.id = in.take<uint8_t>();
  who.endpoint.unixName = in.text(in.take<uint8_t>() % 8);
  return who;
}

inline Bytes entriesFrom(Input& in) {
  Writer out;
  for (int count = in.take<uint8_t>() % 8; count > 0; --count) {
    out.value<int32_t>(in.take<int8_t>());
    out.block(in.bytes(in.take<uint8_t>()));
  }
  return out.take();
}

inline control::Refusal refusalFrom(Input& in) {
  const auto code = in.take<uint8_t>();
  return {static_cast<ErrorCode>(code), in.text(in.take<uint8_t>())};
}

inline Bytes soundPayload(control::Kind kind, Input& in) {
  using namespace control;
  switch (kind) {
    case Kind::kHello:
    case Kind::kTree: {
      Hello hello;
      hello.who = personFrom(in);
      hello.size = in.take<int8_t>();
      hello.leftMs = in.take<int32_t>();
      hello.heartbeatMs = in.take<int32_t>();
      for (int count = in.take<uint8_t>() % 4; count > 0; --count)
        hello.agreement.push_back({in.text(1), in.text(in.take<uint8_t>() % 4)});
      return encode(hello);
    }
    case Kind::kPlace: {
      Place place{in.take<uint8_t>(), toBytes(in.bytes(in.take<uint8_t>() % 64)), {}};
      if (in.take<uint8_t>() % 2 != 0) place.parent = personFrom(in);
      return encode(place);
    }
    case Kind::kRefuse:
    case Kind::kShrinkEnd:
      return encode(refusalFrom(in));
    case Kind::kStream: {
      const auto from = in.take<int8_t>();
      const auto key = in.take<uint8_t>();
      return encode(StreamHello{from, key, static_cast<StreamKind>(in.take<uint8_t>() % 3)});
    }
    case Kind::kGatherUp: {
      const auto sequence = in.take<uint8_t>();
      return Writer().value<uint64_t>(sequence).block(entriesFrom(in)).take();
    }
    case Kind::kGatherDown: {
      Writer out;
      out.value<uint64_t>(in.take<uint8_t>());
      for (int count = in.take<uint8_t>() % 8; count > 0; --count) out.block(in.bytes(in.take<uint8_t>()));
      return out.take();
    }
    case Kind::kMail: {
      const auto from = in.take<int8_t>(), to = in.take<int8_t>();
      const auto key = in.take<uint8_t>();
      const auto use = static_cast<MailUse>(in.take<uint8_t>() % 7);
      return encode(Mail{from, to, key, use, toBytes(in.bytes(in.take<uint8_t>()))});
    }
    case Kind::kFailure: {
      const auto rank = in.take<int8_t>();
      const auto stop = static_cast<Stop>(in.take<uint8_t>() % 6);
      const auto why = refusalFrom(in);
      return encode(Failure{rank, stop, why.code, why.text});
    }
    case Kind::kShrinkCall:
    case Kind::kShrinkProbe: {
      const auto rank = in.take<int8_t>();
      const unsigned what = in.take<uint8_t>();
      return encode(ShrinkCall{rank, what & 3, what >> 2 & 3, what >> 4 & 3, "rank 2", what >> 6 > 0 ? "so" : ""});
    }
    case Kind::kShrinkWait:
      return encodeWords(in.text(in.take<uint8_t>()));
    case Kind::kShrinkTried: {
      ShrinkTried tried{in.take<uint8_t>(), {}};
      if (in.take<uint8_t>() % 2 != 0) tried.refusal = refusalFrom(in);
      return encode(tried);
    }
    case Kind::kShrinkTry: {
      ShrinkTry proposal;
      proposal.id.job = in.take<uint8_t>();
      proposal.parcel = toBytes(in.bytes(control::kParcelBytes));
      for (int count = in.take<uint8_t>() % 8; count > 0; --count) proposal.survivors.push_back(in.take<int8_t>());
      return encode(proposal);
    }
    case Kind::kShrinkDiffer: {
      const auto round = in.take<uint8_t>();
      return encode(ShrinkDiffer{round, in.text(in.take<uint8_t>())});
    }
    case Kind::kShrinkCommit:
      return Writer().value<uint64_t>(in.take<uint8_t>()).take();
    case Kind::kDigest:
      return toBytes(in.bytes(sizeof(Digest)));
    default:
      return {};
  }
}

// Half of them are as `soundPayload` makes them, the others have a byte changed, or are anything.
inline Bytes payloadFrom(control::Kind kind, Input& in) {
  const auto how = in.take<uint8_t>();
  if (how % 4 == 0) return toBytes(in.bytes(in.take<uint8_t>()));
  Bytes payload = soundPayload(kind, in);
  if (how % 4 == 1 && !payload.empty()) {
    const auto place = in.take<uint8_t>(), change = in.take<uint8_t>();
    payload[place % payload.size()] ^= std::byte{change};
  }
  return payload;
}

// A few more than are kept of a kind (control/mailbox.h, control/streams.h).
inline int moreThanAreKept(control::Kind kind) {
  constexpr int kOfMails = 17'000, kOfOthers = 600;
  return kind == control::Kind::kMail ? kOfMails : kOfOthers;
}

// A frame, one of them many times over: what is kept of it must not be without bound. That takes as long as hundreds of
// other inputs, so few have it.
inline void sayAny(Hostile& line, Running& rank, Input& in) {
  const auto kind = static_cast<control::Kind>(in.take<uint8_t>() % 32);
  const auto times = in.take<uint8_t>();
  const Bytes payload = payloadFrom(kind, in);
  line.say(kind, payload);
  if (times == 255 && in.take<uint8_t>() % 16 == 15 && rank.takesAFlood())
    line.flood(kind, payload, moreThanAreKept(kind), rank);
}

}  // namespace tutti::fuzz
