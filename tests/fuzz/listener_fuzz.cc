// A listener whose callers connect in any number, over TCP and its Unix socket, say their hellos whole, by halves or
// changed, or anything else, hang up or wait: those get in who prove the secret, and nobody else; and no descriptor
// stays open.
#include "wire/listener.h"

#include <sys/resource.h>

#include <list>

#include "fuzz/hostile.h"
#include "fuzz/socket_pair.h"

namespace tutti::fuzz {
namespace {

constexpr int kMostSteps = 64, kCrowd = 24;
constexpr rlim_t kFewFiles = 256;  // of which a quarter may wait at the door

HandshakeContext contextOf(bool knows) {
  HandshakeContext context;
  context.secret.fill(knows ? std::byte{0x5a} : std::byte{0x5b});
  context.job = 7;
  context.listener = 9;
  return context;
}

control::Listener::Request requestOf() {
  static uint64_t count = 0;
  Network network;
  network.interfaces = "=lo";
  network.family = 4;
  const std::string name = "tutti-fuzz-listener-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
  return {contextOf(true), {name}, network, 0, true, false};
}

// A listener with a loop of its own, in which few descriptors seem to be had.
class Room : public Service {
 public:
  Room() {
    rlimit files{};
    require(::getrlimit(RLIMIT_NOFILE, &files) == 0);
    const rlimit few{std::min(kFewFiles, files.rlim_max), files.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    listener_.emplace(reactor_, requestOf(), [this](const std::shared_ptr<control::Line>& line, Frame&) {
      ++arrivals_;
      line->close();
    });
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  void run() override {
    reactor_.run([](const std::string&) { require(false); });
    listener_->close();
  }
  void hurry() override { halt(); }
  void halt() override {
    reactor_.post([this] { reactor_.stop(); });
  }
  const control::Endpoint& endpoint() const noexcept { return listener_->endpoint(); }
  int arrivals() const noexcept { return arrivals_; }

 private:
  Reactor reactor_;
  std::optional<control::Listener> listener_;
  std::atomic<int> arrivals_{0};
};

UniqueFd dial(const Room& room, bool unix) {
  if (unix) return dialUnix(room.endpoint().unixName);
  UniqueFd fd = dialTcp(room.endpoint().addresses.front());
  if (fd) awaitEvents(fd.get(), POLLOUT, Deadline::in(test::longWait()));
  return fd;
}

// One who calls with the hello of this job, or of another secret.
class Caller {
 public:
  Caller(UniqueFd fd, bool knows, bool unix)
      : fd_(std::move(fd)), knows_(knows), hello_(role(), context(knows, unix)) {}

  // As far as it goes within a moment.
  void advance() {
    while (fd_ && status_ != Handshake::Status::kFailed && status_ != Handshake::Status::kDone) {
      status_ = hello_.advance(fd_.get());
      if (status_ == Handshake::Status::kWantsRead && !awaitEvents(fd_.get(), POLLIN, soon())) break;
    }
    require(knows_ || status_ != Handshake::Status::kDone);
  }
  // The beginning of its hello, with a byte changed, instead of it.
  void half(Input& in) {
    const SocketPair aside;
    if (hello_.advance(aside.ours.get()) == Handshake::Status::kFailed) return;
    std::byte said[256];
    const ssize_t n = ::recv(aside.theirs.get(), said, sizeof said, 0);
    if (n <= 0) return;
    const auto place = in.take<uint8_t>(), change = in.take<uint8_t>();
    said[place % n] ^= std::byte{change};
    write({said, std::min<size_t>(static_cast<size_t>(n), in.take<uint8_t>())});
  }
  void write(std::span<const std::byte> bytes) {
    if (fd_ && !bytes.empty()) (void)::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void close() noexcept { fd_.reset(); }
  bool mayArrive() const noexcept { return knows_; }

 private:
  static Handshake::Role role() { return Handshake::Role::kClient; }
  static HandshakeContext context(bool knows, bool unix) {
    HandshakeContext made = contextOf(knows);
    made.local = unix;
    return made;
  }

  UniqueFd fd_;
  bool knows_;
  Handshake hello_;
  Handshake::Status status_ = Handshake::Status::kWantsWrite;
};

void call(const Room& room, std::list<Caller>& callers, uint8_t how) {
  const bool unix = how % 4 != 0, knows = how / 4 % 2 == 0;
  callers.emplace_back(dial(room, unix), knows, unix);
}

void step(const Room& room, std::list<Caller>& callers, Input& in) {
  const auto what = in.take<uint8_t>();
  if (what % 8 == 0 || callers.empty()) return call(room, callers, what / 8);
  Caller& caller = *std::next(callers.begin(), static_cast<ptrdiff_t>(what / 8 % callers.size()));
  switch (what % 8) {
    case 1:
      return caller.close();
    case 2:
      return caller.half(in);
    case 3:
      for (int i = 0; i < kCrowd && callers.size() < kFewFiles; ++i) call(room, callers, what / 8);
      return;
    case 4:
      return caller.write(in.bytes(in.take<uint8_t>()));
    case 5: {  // a frame, as if the hello were done
      Writer frame;
      frame.value('T').value('f').value<uint8_t>(1).value(in.take<uint8_t>()).block(in.bytes(in.take<uint8_t>()));
      return caller.write(frame.take());
    }
    default:
      return caller.advance();
  }
}

void run(Input in) {
  Room room;
  std::list<Caller> callers;
  {
    Running running(room);
    for (int steps = 0; !in.empty() && steps < kMostSteps; ++steps) {
      step(room, callers, in);
      running.goOn();
    }
  }
  require(room.arrivals() <= std::ranges::count_if(callers, &Caller::mayArrive));
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tutti::fuzz::leavingNoneOpen(tutti::fuzz::run, data, size);
}
