// The hello, with a stranger at the other end who says anything, or with a man in the middle of two who know the
// secret. A stranger never gets in; the two get in with the same keys, or not at all where a byte was changed.
#include <array>

#include "fuzz/socket_pair.h"
#include "net/handshake.h"

namespace tutti::fuzz {
namespace {

using Role = Handshake::Role;
using Status = Handshake::Status;

// The two ends of hellos with keys of their own: [0] calls [1].
const std::array<noise::KeyPair, 2> kPairs{noise::drawKeyPair(), noise::drawKeyPair()};

HandshakeContext context(Role role, uint8_t kind, Encryption encryption = Encryption::kOff) {
  HandshakeContext made;
  made.local = kind % 3 == 1;
  made.named = kind % 3 == 2;
  made.own = kPairs[role == Role::kClient ? 0 : 1];
  if (role == Role::kClient) made.peer = kPairs[1].open;
  made.encryption = encryption;
  made.secret.fill(std::byte{0x5a});
  made.job = 7;
  made.listener = 9;
  return made;
}

void meetStranger(Role role, Input in) {
  const SocketPair pair;
  Handshake handshake(role, context(role, in.take<uint8_t>()));
  Status status = handshake.advance(pair.ours.get());
  while (!in.empty() && status != Status::kFailed) {
    pair.write(in.bytes(1 + in.take<uint8_t>()));
    status = handshake.advance(pair.ours.get());
  }
  pair.endOfStream();
  require(handshake.advance(pair.ours.get()) == Status::kFailed);
  require(!handshake.error().empty());
}

// Carries what one side has said to the other; whether a byte was changed on the way.
bool carry(const UniqueFd& from, const UniqueFd& to, Input& in) {
  std::array<std::byte, 256> said;
  const ssize_t n = ::recv(from.get(), said.data(), said.size(), 0);
  if (n <= 0) return false;
  const auto change = in.take<uint8_t>(), place = in.take<uint8_t>();
  said[place % static_cast<size_t>(n)] ^= std::byte{change};
  require(::send(to.get(), said.data(), static_cast<size_t>(n), MSG_NOSIGNAL) == n);
  return change != 0;
}

void standBetween(Input in) {
  const SocketPair up, down;
  // Two that differ in what they want sealed part as well.
  const auto wants = [&] { return static_cast<Encryption>(in.take<uint8_t>() % 2); };
  const Encryption ours = wants(), theirs = wants();
  const auto kind = in.take<uint8_t>();
  Handshake client(Role::kClient, context(Role::kClient, kind, ours));
  Handshake server(Role::kServer, context(Role::kServer, kind, theirs));
  bool changed = false;
  Status a = Status::kWantsRead, b = Status::kWantsRead;
  for (int i = 0; i < 4; ++i) {
    if (a != Status::kFailed) a = client.advance(up.ours.get());
    changed |= carry(up.theirs, down.theirs, in);
    if (b != Status::kFailed) b = server.advance(down.ours.get());
    changed |= carry(down.theirs, up.theirs, in);
  }
  if (a != Status::kFailed) a = client.advance(up.ours.get());
  const bool both = a == Status::kDone && b == Status::kDone;
  require(both == (!changed && ours == theirs));
  if (!both) return;
  const SessionKeys mine = client.keys(), other = server.keys();
  require(mine.send == other.receive && mine.receive == other.send && mine.kind == other.kind);
  require(mine.send != mine.receive && mine.send != client.keys(Handshake::Use::kData).send);
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::Input in(data, size);
  switch (in.take<uint8_t>() % 3) {
    case 0:
      tutti::fuzz::meetStranger(tutti::Handshake::Role::kServer, in);
      break;
    case 1:
      tutti::fuzz::meetStranger(tutti::Handshake::Role::kClient, in);
      break;
    default:
      tutti::fuzz::standBetween(in);
  }
  return 0;
}
