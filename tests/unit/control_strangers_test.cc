// Strangers at the listeners: garbage, half a hello, frames without a hello, idle connections.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>

#include "control_ranks.h"
#include "join/root.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "net/socket.h"
#include "support/sanitized.h"
#include "wire/listener.h"

namespace tutti::control::test {
namespace {

// A blocking connection to the root of `id`.
UniqueFd call(const UniqueId& id, bool unix) {
  UniqueFd fd = unix ? dialUnix(rootUnixName(id.job)) : dialTcp(id.addresses.at(0));
  pollfd ready{fd.get(), POLLOUT, 0};
  ::poll(&ready, 1, 5000);
  return fd;
}

void say(int fd, const std::string& text) { ::send(fd, text.data(), text.size(), MSG_NOSIGNAL); }

bool hangsUp(int fd) {
  pollfd ready{fd, POLLIN, 0};
  char waste[4096];
  while (::poll(&ready, 1, 20000) == 1) {
    const ssize_t n = ::recv(fd, waste, sizeof waste, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return true;
  }
  return false;
}

const std::string kHelloMagic = std::string("tuttiHi") + char(4);

class Stranger : public testing::TestWithParam<bool> {};
class Guest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(UnixOrTcp, Guest, testing::Bool());
INSTANTIATE_TEST_SUITE_P(UnixOrTcp, Stranger, testing::Bool());

TEST_P(Stranger, DoesNotDisturbAJoinInProgress) {
  const UniqueId id = openRoot({}, soon());
  const bool unix = GetParam();
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 50; ++i) idle.push_back(call(id, unix));
  std::vector<std::shared_ptr<Plane>> planes(6);
  inThreads(12, [&](int i) {
    if (i < 6) {
      planes[size_t(i)] = joinPlane(requestFor(id, i, 6));
      return;
    }
    for (int again = 0; again < 10; ++again) {
      const UniqueFd fd = call(id, unix);
      if (!fd) return;  // all have joined, and the root has closed
      if (i == 6) say(fd.get(), "GET / HTTP/1.1\r\nHost: here\r\n\r\n and a good deal more, to be longer than a hello");
      if (i == 7) say(fd.get(), kHelloMagic + std::string(10, 'x'));
      if (i == 8) say(fd.get(), kHelloMagic + std::string(32, 'x') + std::string(32, 'y'));
      if (i == 9) say(fd.get(), std::string("Tf\1\1\377\377\377\377", 8) + std::string(200, 'z'));
      if (i == 10) say(fd.get(), std::string(100000, '\0'));
    }
  });
  for (const auto& plane : planes) EXPECT_EQ(toText(plane->info(5)), "card of 5");
}

TEST_P(Stranger, IsHungUpOnWithoutALearnedByte) {
  const UniqueId id = openRoot({}, soon());
  for (const std::string& words :
       {std::string(64, 'G'), kHelloMagic.substr(0, 7) + std::string(33, 'v'), kHelloMagic + std::string(64, 'm')}) {
    const UniqueFd fd = call(id, GetParam());
    say(fd.get(), words);
    EXPECT_TRUE(hangsUp(fd.get()));
  }
}

TEST_P(Stranger, WhoSaysNothingIsDroppedAfterAWhile) {
  const UniqueId id = openRoot({}, soon());
  const UniqueFd silent = call(id, GetParam()), half = call(id, GetParam());
  say(half.get(), kHelloMagic);
  EXPECT_TRUE(hangsUp(silent.get()));
  EXPECT_TRUE(hangsUp(half.get()));
}

// Speaks the hello to its end, as one who knows the secret.
void proveSecret(int fd, HandshakeContext context) {
  context.local = isUnix(fd);
  Handshake hello(Handshake::Role::kClient, context);
  for (auto status = Handshake::Status::kWantsRead; status != Handshake::Status::kDone;) {
    ASSERT_NE(status, Handshake::Status::kFailed) << hello.error();
    pollfd ready{fd, POLLIN, 0};
    status = hello.advance(fd);
    if (status == Handshake::Status::kWantsRead) {
      ASSERT_EQ(::poll(&ready, 1, 20000), 1);
    }
  }
}

// Someone who knows the secret but breaks the protocol after the hello harms only this connection.
TEST(Insider, WithAnOversizedOrForeignFrameIsDropped) {
  const UniqueId id = openRoot({}, soon());
  for (const std::string& words : {std::string("Tf\1\1\377\377\377\377", 8), std::string("Tf\1\143\0\0\0\0", 8),
                                   std::string("Tf\1\1\2\0\0\0ab", 10), std::string("HTTP/1.1", 8)}) {
    const UniqueFd fd = call(id, false);
    proveSecret(fd.get(), rootContext(id));
    say(fd.get(), words);
    EXPECT_TRUE(hangsUp(fd.get()));
  }
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
}

// A rank that dials over several paths drops those that were slower, in the hello or just after it: no stranger.
TEST_P(Guest, WhoLeavesIsNotWarnedOf) {
  testing::internal::CaptureStderr();
  const UniqueId id = openRoot({}, soon());
  for (const bool abruptly : {false, true}) {
    const UniqueFd fd = call(id, GetParam());
    proveSecret(fd.get(), rootContext(id));
    const linger atOnce{1, 0};
    if (abruptly) ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce);
    if (abruptly) say(fd.get(), "Tf");
  }
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// The line about a refused caller says once where it called from, also where frames are sealed.
TEST(Insider, WhoseSealedFrameIsForgedIsNamedOnce) {
  testing::internal::CaptureStderr();
  const UniqueId id = openRoot({}, soon());
  HandshakeContext context = rootContext(id);
  context.encryption = Encryption::kOn;
  const UniqueFd fd = call(id, false);
  proveSecret(fd.get(), context);
  say(fd.get(), std::string(64, 'x'));
  EXPECT_TRUE(hangsUp(fd.get()));
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
  const std::string line = testing::internal::GetCapturedStderr(), from = ":" + std::to_string(portOf(fd.get()));
  ASSERT_NE(line.find("refused"), std::string::npos) << line;
  ASSERT_NE(line.find(from), std::string::npos) << line;
  EXPECT_EQ(line.find(from), line.rfind(from)) << line;
}

Address ip(std::initializer_list<uint8_t> bytes) {
  Address made;
  made.v6 = bytes.size() == 16;
  std::copy(bytes.begin(), bytes.end(), made.ip.begin());
  return made;
}

TEST(Neighbourhood, IsAnAddressOrANetwork) {
  const auto of = [](std::initializer_list<uint8_t> bytes) { return neighbourhoodOf(ip(bytes)); };
  const auto mapped = [&](uint8_t a, uint8_t b) { return of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, 0, 0, b}); };
  const auto v6 = [&](uint8_t net, uint8_t host) {
    return of({0xfd, 0, 0, 0, 0, 0, 0, net, 9, 9, 9, 9, 9, 9, 9, host});
  };
  EXPECT_NE(of({10, 0, 0, 1}), of({10, 0, 0, 2}));
  EXPECT_EQ(of({10, 0, 0, 1}), mapped(10, 1)) << "as a socket for both families shows it";
  EXPECT_NE(mapped(10, 1), mapped(10, 2));
  EXPECT_EQ(v6(1, 1), v6(1, 2)) << "whoever has one address has the network's";
  EXPECT_NE(v6(1, 1), v6(2, 1));
  EXPECT_EQ(of({127, 0, 0, 1}), "");
  EXPECT_EQ(mapped(127, 1), "");
  EXPECT_EQ(of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), "");
}

// Where the root is called not over the loopback.
std::optional<Address> elsewhere(const UniqueId& id) {
  const auto reaches = [](const Address& address) { return !address.v6 && !neighbourhoodOf(address).empty(); };
  const auto there = std::ranges::find_if(id.addresses, reaches);
  return there == id.addresses.end() ? std::nullopt : std::optional(*there);
}

Address onLoopback(const Address& there) {
  Address loopback = ip({127, 0, 0, 1});
  loopback.port = there.port;
  return loopback;
}

// Half a hello a hundred times over from one address: who has called from elsewhere before keeps his place.
TEST(Crowd, OfOneAddressHasAShareOfTheRoom) {
  const UniqueId id = openRoot({}, soon());
  const auto there = elsewhere(id);
  if (!there) GTEST_SKIP() << "needs an IPv4 address beside the loopback's";
  const UniqueFd early = dialTcp(onLoopback(*there));
  pollfd connected{early.get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&connected, 1, 20000), 1);
  constexpr size_t kCrowd = 700, kMostShare = 128;
  std::vector<UniqueFd> crowd;
  for (size_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(dialTcp(*there));
    say(crowd.back().get(), kHelloMagic + std::string(10, 'x'));
  }
  for (size_t i = 0; i < kCrowd - kMostShare; ++i) EXPECT_TRUE(hangsUp(crowd[i].get())) << i;
  proveSecret(early.get(), rootContext(id));
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
}

// A crowd of strangers over the loopback puts nobody out who came before it from `early`, and has not spoken yet.
void expectKept(const UniqueId& id, UniqueFd early) {
  pollfd connected{early.get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&connected, 1, 20000), 1);
  constexpr size_t kCrowd = 700, kRoom = 512;
  std::vector<UniqueFd> crowd;
  for (size_t i = 0; i < kCrowd; ++i) crowd.push_back(dialTcp(onLoopback(id.addresses.at(0))));
  for (size_t i = 0; i < kCrowd - kRoom; ++i) EXPECT_TRUE(hangsUp(crowd[i].get())) << i;
  proveSecret(early.get(), rootContext(id));
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
}

TEST(Crowd, MakesWayForThoseOfOtherAddresses) {
  const UniqueId id = openRoot({}, soon());
  const auto there = elsewhere(id);
  if (!there) GTEST_SKIP() << "needs an IPv4 address beside the loopback's";
  expectKept(id, dialTcp(*there));
}

// Other users of the host come over the loopback alone.
TEST(Crowd, MakesWayForThoseOfTheSameUser) {
  const UniqueId id = openRoot({}, soon());
  expectKept(id, dialUnix(rootUnixName(id.job)));
}

// All descriptors of this process but one, while it lives.
class AllButOne {
 public:
  AllButOne() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{std::min<rlim_t>(before_.rlim_cur, 256), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = 0; (fd = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) hoard_.emplace_back(fd);
    if (!hoard_.empty()) hoard_.pop_back();
  }
  ~AllButOne() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  AllButOne(const AllButOne&) = delete;
  AllButOne& operator=(const AllButOne&) = delete;
  static bool isTaken() { return !UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)); }

 private:
  rlimit before_{};
  std::vector<UniqueFd> hoard_;
};

UniqueFd unixSocket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

void connectTo(const std::string& name, int fd) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  name.copy(at.sun_path + 1, sizeof at.sun_path - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&at), bytes), 0);
}

// A caller that goes on calling until it is let in.
class Persistent {
 public:
  Persistent(std::string name, const HandshakeContext& context) : name_(std::move(name)), context_(context) {
    context_.local = true;
  }
  void step() {
    if (!hello_) call();
    if (said_) return;
    const auto status = hello_->advance(fd_.get());
    if (status == Handshake::Status::kFailed) return call();
    if (status != Handshake::Status::kDone) return;
    FrameQueue out;
    out.push(static_cast<uint8_t>(Kind::kHello), std::make_shared<const Bytes>());
    said_ = out.flush(fd_.get());
  }

 private:
  void call() {
    if (hello_) fd_.reset(), fd_ = unixSocket();
    connectTo(name_, fd_.get());
    hello_.emplace(Handshake::Role::kClient, context_);
  }
  const std::string name_;
  HandshakeContext context_;
  UniqueFd fd_ = unixSocket();
  std::optional<Handshake> hello_;
  bool said_ = false;
};

// One of a crowd at one door has the last descriptor, and has said nothing for a while, when somebody calls at the
// other door, and then the rest of the crowd at theirs. How many of the crowd have made way when that one is let in.
int64_t goneBeforeTheCaller() {
  const RootPlace place = anyRootPlace();
  const std::string one = rootUnixName(place.id.job), other = one + "-too";
  Reactor reactor;
  bool letIn = false;
  Listener::Request request;
  request.context = rootContext(place.id);
  request.unixNames = {one, other};
  request.tcp = false;
  Listener listener(reactor, request, [&](const std::shared_ptr<Line>& line, Frame&) {
    letIn = true;
    line->close();
    reactor.stop();
  });
  Persistent caller(one, rootContext(place.id));
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 40; ++i) crowd.push_back(unixSocket());
  const AllButOne scarce;
  connectTo(other, crowd[0].get());
  size_t there = 1;  // of the crowd
  int looks = 0;     // since the descriptor is taken
  const std::function<void()> look = [&] {
    if (AllButOne::isTaken()) ++looks;
    if (looks > 50) {
      caller.step();
      for (; there < crowd.size(); ++there) connectTo(other, crowd[there].get());
    }
    reactor.after(std::chrono::milliseconds(1), look);
  };
  look();
  reactor.after(tutti::test::longWait(), [&] { reactor.stop(); });
  reactor.run([](const std::string& what) { ADD_FAILURE() << what; });
  EXPECT_TRUE(letIn);
  char waste;
  return std::ranges::count_if(crowd, [&](const UniqueFd& fd) { return ::recv(fd.get(), &waste, 1, 0) == 0; });
}

// The descriptor is for who asked for it, and not for the next of the crowd. Where this machine stops for longer than
// a caller may take to speak, it is another's turn: so that is tried more than once.
TEST(Crowd, AtOneDoorMakesWayForWhoCallsAtAnother) {
  if (kSanitized) GTEST_SKIP() << "needs no sanitizer: with no descriptor left, UBSan takes good objects for bad";
  int64_t fewest = goneBeforeTheCaller();
  for (int again = 0; again < 10 && fewest > 1; ++again) fewest = std::min(fewest, goneBeforeTheCaller());
  EXPECT_EQ(fewest, 1);
}

// A hello that was recorded gets no answer at the door where it came before, and takes no place in the room.
TEST_P(Stranger, WithARecordedHelloIsHungUpOn) {
  const UniqueId id = openRoot({}, soon());
  HandshakeContext context = rootContext(id);
  context.local = GetParam();
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd mouth(ends[0]), recorder(ends[1]);
  Handshake speaker(Handshake::Role::kClient, context);
  speaker.advance(mouth.get());
  std::string words(256, '\0');
  words.resize(size_t(::recv(recorder.get(), words.data(), words.size(), 0)));
  const UniqueFd first = call(id, GetParam());
  say(first.get(), words);
  pollfd answered{first.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&answered, 1, 20000), 1);
  char byte = 0;
  EXPECT_EQ(::recv(first.get(), &byte, 1, MSG_PEEK), 1);
  for (int i = 0; i < 20; ++i) {
    const UniqueFd again = call(id, GetParam());
    say(again.get(), words);
    pollfd ready{again.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 20000), 1);
    EXPECT_LE(::recv(again.get(), &byte, 1, 0), 0) << "an answer";
  }
  inThreads(2, [&](int r) { joinPlane(requestFor(id, r, 2)); });
}

// More callers than may wait: the oldest give way, and those who belong here get in.
TEST(Crowd, DoesNotKeepTheRanksOut) {
  Network network;
  const UniqueId id = openRoot(network, soon());
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 700; ++i) crowd.push_back(dialTcp(id.addresses.at(0)));
  inThreads(3, [&](int r) { joinPlane(requestFor(id, r, 3)); });
}

}  // namespace
}  // namespace tutti::control::test
