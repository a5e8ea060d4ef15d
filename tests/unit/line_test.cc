// A line that is ending, and a call that cannot begin, leave the reactor to the others.
#include "wire/line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "support/oob_pair.h"
#include "support/patience.h"
#include "support/sanitized.h"
#include "wire/prober.h"

namespace tutti::control {
namespace {

// Two lines of one reactor, over a Unix socket: `then` gets the server's, and the socket of the client.
void greet(Reactor& reactor, const std::function<void(std::shared_ptr<Line>, UniqueFd)>& then) {
  auto pair = tutti::test::unixPair();
  for (const UniqueFd* end : {&pair.first, &pair.second}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  const HandshakeContext context{{}, 1, 2};
  const auto server = Line::open(reactor, std::move(pair.first), Handshake::Role::kServer, context, {});
  const auto client = Line::open(reactor, std::move(pair.second), Handshake::Role::kClient, context, {});
  Line::Events events;
  events.ready = [&] { reactor.post([&, server] { then(server, std::move(client->take().fd)); }); };
  server->setEvents(std::move(events));
  reactor.after(3 * tutti::test::longWait(), [&] { reactor.stop(); });
  reactor.run([](const std::string& what) { ADD_FAILURE() << what; });
}

size_t fill(int fd) {
  const int wanted = 1 << 20;
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
  const Bytes words(4096);
  size_t sent = 0;
  for (ssize_t n = 0; n >= 0; n = ::send(fd, words.data(), words.size(), MSG_DONTWAIT)) sent += size_t(n);
  return sent;
}

int waiting(int fd) {
  int bytes = 0;
  return ::ioctl(fd, TIOCOUTQ, &bytes) == 0 ? bytes : -1;
}

TEST(ALineThatEnds, LeavesTimeForOthersHoweverMuchComes) {
  constexpr size_t kMoreThanAtOnce = 300'000;
  Reactor reactor;
  size_t sent = 0;
  int left = 0;
  greet(reactor, [&](const std::shared_ptr<Line>& line, UniqueFd peer) {
    sent = fill(peer.get());
    line->finish([&] { reactor.stop(); });
    const auto end = std::make_shared<UniqueFd>(std::move(peer));
    const auto look = [&, end] {
      left = waiting(end->get());
      end->reset();
    };
    // The second comes when the line has had its turn once.
    reactor.after({}, [&reactor, look] { reactor.after({}, look); });
  });
  if (sent < kMoreThanAtOnce) GTEST_SKIP() << "needs a socket that holds 300 kB (net.core.wmem_max)";
  EXPECT_GT(left, 0);
}

TEST(ACallToARank, ThatCannotBeginIsNotHeardOf) {
  if (kSanitized) GTEST_SKIP() << "needs no sanitizer: with no descriptor left, UBSan takes good objects for bad";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Address linkLocal;  // to be called from each interface, of which there is no list without a descriptor
  linkLocal.v6 = true;
  linkLocal.scope = 1;
  Reactor reactor;
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(std::make_unique<Prober>(
                   reactor, Dial::Target{{}, {}, {linkLocal}}, std::chrono::milliseconds(0),
                   [](const std::shared_ptr<Line>&) { ADD_FAILURE() << "an answer"; },
                   [](const std::string& why) { ADD_FAILURE() << why; }),
               Error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  reactor.after(std::chrono::milliseconds(1), [&] { reactor.stop(); });
  reactor.run([](const std::string& what) { ADD_FAILURE() << what; });
}

}  // namespace
}  // namespace tutti::control
