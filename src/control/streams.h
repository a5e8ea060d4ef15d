// Bare stream sockets to peers: the lower rank dials the other's listener, names itself and a key, and both own an end.
#pragma once
#include <functional>
#include <list>
#include <memory>

#include "control/mailbox.h"
#include "wire/dial.h"

namespace tutti::control {

class Streams {
 public:
  // Sends a mail to its rank, wherever that is.
  using SendMail = std::function<void(Mail)>;
  Streams(Reactor& reactor, Mailbox& mailbox, int self, Encryption encryption, SendMail sendMail)
      : reactor_(reactor), mailbox_(mailbox), self_(self), encryption_(encryption), sendMail_(std::move(sendMail)) {}

  // This rank wants a stream to `peer`, and proves `context` there. The higher rank has only to wait.
  void request(const RankAddress& peer, const HandshakeContext& context, uint64_t key, StreamKind kind);
  // One has come, from the rank that `hello` names. Throws Error(kRemote) where it may not.
  void admit(const StreamHello& hello, SecureSocket socket);
  // The peer could not reach this rank.
  void refused(const Mail& mail);
  void stop() noexcept;

 private:
  struct Call {
    std::shared_ptr<Dial> dial;
    Reactor::Token deadline = 0;
    int rounds = 0;
    std::string lastRefusal;
  };
  using CallAt = std::list<Call>::iterator;
  struct Wanted {
    RankAddress peer;
    uint64_t key;
    StreamKind kind;
  };
  bool inTheClear(const SecureSocket& socket, StreamKind kind) const noexcept;
  void begin(CallAt call, Dial::Target target, const Wanted& wanted);
  void won(CallAt call, const Wanted& wanted, Line& line);
  void giveUp(CallAt call, const Wanted& wanted);
  void end(CallAt call) noexcept;

  Reactor& reactor_;
  Mailbox& mailbox_;
  int self_;
  Encryption encryption_;
  SendMail sendMail_;
  std::list<Call> calls_;
};

}  // namespace tutti::control
