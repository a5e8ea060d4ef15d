#include "control/streams.h"

#include <chrono>

namespace tutti::control {
namespace {

constexpr std::chrono::seconds kDialTime(20);
// A listener of the same network namespace answers at once or never: these rounds only ride out a full queue.
constexpr int kUnixRounds = 5;

constexpr const char* kNoUnixSocket =
    "it has no Unix socket to be called at: TUTTI_UNIX_SOCKETS=0 is set there, or its system gave it none";

constexpr const char* kInTheClear = "TUTTI_ENCRYPT=1 is set, and the connection came without keys";

const char* nameOf(StreamKind kind) noexcept { return kind == StreamKind::kUnix ? "Unix" : "TCP"; }

}  // namespace

void Streams::request(const RankAddress& peer, const HandshakeContext& context, uint64_t key, StreamKind kind) {
  if (self_ > peer.rank) return;
  const Wanted wanted{peer, key, kind};
  const auto call = calls_.insert(calls_.end(), Call{});
  Dial::Target target{context, {}, {}};
  if (kind == StreamKind::kUnix)
    target.unixNames = unixNamesOf(peer.endpoint);
  else
    target.addresses = peer.endpoint.addresses;
  try {
    begin(call, std::move(target), wanted);
  } catch (const std::exception&) {  // no memory: it is not under way
    end(call);
    throw;
  }
}

void Streams::begin(CallAt call, Dial::Target target, const Wanted& wanted) {
  call->deadline = reactor_.after(kDialTime, [this, call, wanted] { giveUp(call, wanted); });
  call->dial = Dial::start(
      reactor_, std::move(target),
      [this, call, wanted](const std::shared_ptr<Line>& line) { won(call, wanted, *line); },
      [this, call, wanted](const std::string& why) {
        const bool noSocket = wanted.kind == StreamKind::kUnix && wanted.peer.endpoint.unixName.empty();
        call->lastRefusal = noSocket ? kNoUnixSocket : why;
        if (wanted.kind == StreamKind::kUnix && ++call->rounds == kUnixRounds) giveUp(call, wanted);
      });
}

void Streams::end(CallAt call) noexcept {
  reactor_.cancel(call->deadline);
  if (call->dial) call->dial->cancel();
  calls_.erase(call);
}

void Streams::won(CallAt call, const Wanted& wanted, Line& line) {
  line.send(Kind::kStream, encode(StreamHello{self_, wanted.key, wanted.kind}));
  // A fresh socket takes these few bytes whole; were it not so, the stream would begin in the middle of the hello.
  if (!line.drained()) {
    line.close();
    call->lastRefusal = "the fresh connection took no data";
    return giveUp(call, wanted);
  }
  SecureSocket socket = line.take();
  if (inTheClear(socket, wanted.kind)) {
    call->lastRefusal = kInTheClear;
    return giveUp(call, wanted);
  }
  end(call);
  if (!mailbox_.park(wanted.peer.rank, wanted.key, wanted.kind, std::move(socket)))
    mailbox_.noStream(wanted.peer.rank, wanted.key, wanted.kind, "too many streams wait here to be taken");
}

// What leaves the host is sealed or does not leave: no matter what the hello came to, this rank has been told.
bool Streams::inTheClear(const SecureSocket& socket, StreamKind kind) const noexcept {
  return encryption_ == Encryption::kOn && kind == StreamKind::kTcp && !socket.keys;
}

void Streams::giveUp(CallAt call, const Wanted& wanted) {
  const std::string why =
      fmt::format("no {} stream between rank {} and {}: {}", nameOf(wanted.kind), self_, describe(wanted.peer),
                  call->lastRefusal.empty() ? "no answer" : call->lastRefusal);
  end(call);
  mailbox_.noStream(wanted.peer.rank, wanted.key, wanted.kind, why);
  sendMail_({self_, wanted.peer.rank, wanted.key,
             wanted.kind == StreamKind::kUnix ? MailUse::kNoUnixStream : MailUse::kNoTcpStream, encodeWords(why)});
}

void Streams::admit(const StreamHello& hello, SecureSocket socket) {
  if (hello.from < 0 || hello.from >= self_)
    throw Error(
        ErrorCode::kRemote,
        fmt::format("a stream from rank {}, which rank {} calls and not the other way round", hello.from, self_));
  if (inTheClear(socket, hello.kind)) throw Error(ErrorCode::kRemote, kInTheClear);
  if (!mailbox_.park(hello.from, hello.key, hello.kind, std::move(socket)))
    throw Error(ErrorCode::kRemote,
                fmt::format("a stream from rank {}, and too many of it, or of all ranks, wait here that nobody takes",
                            hello.from));
}

void Streams::refused(const Mail& mail) {
  const std::string why = decodeWords(mail.body);
  mailbox_.noStream(mail.from, mail.key, mail.use == MailUse::kNoUnixStream ? StreamKind::kUnix : StreamKind::kTcp,
                    why);
}

void Streams::stop() noexcept {
  while (!calls_.empty()) end(calls_.begin());
}

}  // namespace tutti::control
