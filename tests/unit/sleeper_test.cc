// What wakes a thread that sleeps, and what does not. Nothing here goes by the clock: a sleep says whether it was
// woken.
#include "engine/attendance.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <thread>

#include "engine/sleeper.h"
#include "process/fd.h"
#include "support/edge_pair.h"
#include "transports/tcp/tcp.h"

namespace tutti::engine {
namespace {

// Reads all that comes, if it is driven.
class Reader final : public link::Driver {
 public:
  Reader() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) throw std::runtime_error("no socket pair");
    here_ = UniqueFd(ends[0]);
    there_ = UniqueFd(ends[1]);
  }
  link::Progress progress() noexcept override {
    ++turns_;
    char waste[64];
    const ssize_t got = ::recv(here_.get(), waste, sizeof waste, 0);
    if (got == 0) ended_ = true;
    return got > 0 ? link::Progress::kAdvanced : link::Progress::kIdle;
  }
  bool sending() const noexcept override { return false; }
  Interest wanted() noexcept override { return {here_.get(), static_cast<short>(ended_ ? 0 : POLLIN)}; }
  std::string error() const override { return ""; }

  void post() { ASSERT_EQ(::send(there_.get(), "x", 1, 0), 1); }
  void close() { there_.reset(); }
  int turns() const noexcept { return turns_; }

 private:
  UniqueFd here_, there_;
  bool ended_ = false;
  int turns_ = 0;
};

bool sleepOn(std::initializer_list<link::Driver*> drivers) {
  Sleeper sleeper;
  for (link::Driver* driver : drivers) sleeper.watch(*driver);
  return sleeper.sleep();
}

TEST(Sleeping, NewsThatNoLaneWaitsForEndOneSleepOnly) {
  Reader awaited, other;
  other.post();
  EXPECT_TRUE(sleepOn({&awaited, &other}));
  EXPECT_EQ(other.turns(), 1);
  EXPECT_FALSE(sleepOn({&awaited, &other}));
  EXPECT_EQ(awaited.turns(), 0);
}

TEST(Sleeping, ALinkThatIsNamedTwiceIsServedOnce) {
  Reader both;
  both.post();
  EXPECT_TRUE(sleepOn({&both, &both}));
  EXPECT_EQ(both.turns(), 1);
}

TEST(Sleeping, AStreamThatHasEndedWakesNobodyAgain) {
  Reader reader;
  reader.close();
  EXPECT_TRUE(sleepOn({&reader}));
  EXPECT_FALSE(sleepOn({&reader}));
  EXPECT_FALSE(sleepOn({&reader}));
}

// More sockets than the process may open: poll() refuses them. Whoever only asked it again would not give its core
// away.
TEST(Sleeping, SleepsEvenWhereSocketsCanNotBeWaitedFor) {
  std::deque<Reader> readers(20);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 8;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  rusage begin{}, end{};
  ::getrusage(RUSAGE_THREAD, &begin);
  for (int i = 0; i < 10; ++i) {
    Sleeper sleeper;
    for (Reader& reader : readers) sleeper.watch(reader);
    EXPECT_FALSE(sleeper.sleep());
  }
  ::getrusage(RUSAGE_THREAD, &end);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GE(end.ru_nvcsw - begin.ru_nvcsw, 10);
}

TEST(Sleeping, HearsItsBell) {
  link::Doorbell bell;
  Sleeper sleeper;
  sleeper.hear(bell, nullptr);
  EXPECT_FALSE(sleeper.sleep());
  link::ring(&bell);
  EXPECT_TRUE(sleeper.sleep());
}

TEST(Sleeping, HearsTheBellOfEachCommunicator) {
  if (::syscall(449, nullptr, 0, 0, nullptr, 0) < 0 && errno == ENOSYS)
    GTEST_SKIP() << "needs a kernel that waits for several futexes (5.16)";
  for (const int which : {0, 1, 2}) {
    std::deque<link::Doorbell> bells(3);
    Sleeper sleeper;
    for (link::Doorbell& bell : bells) sleeper.hear(bell, nullptr);
    EXPECT_FALSE(sleeper.sleep());
    link::ring(&bells[size_t(which)]);
    EXPECT_TRUE(sleeper.sleep());
  }
}

TEST(Sleeping, HearsItsBellAmongSockets) {
  link::Doorbell bell;
  link::Ear ear(bell);
  Reader reader;
  const auto sleep = [&](bool rings) {
    Sleeper sleeper;
    sleeper.hear(bell, &ear);
    sleeper.watch(reader);
    if (rings) link::ring(&bell);
    return sleeper.sleep();
  };
  EXPECT_FALSE(sleep(false));
  EXPECT_TRUE(sleep(true));
  EXPECT_FALSE(sleep(false)) << "what was heard is heard once";
}

TEST(Sleeping, OneOfTwoThreadsThatWakesLeavesTheOtherItsBell) {
  link::Doorbell bell;
  Sleeper one, other;
  one.hear(bell, nullptr);
  other.hear(bell, nullptr);
  other.hear(bell, nullptr);  // it may run several calls of one communicator
  one.rise();
  link::ring(&bell);
  EXPECT_TRUE(other.sleep());
  other.rise();
  EXPECT_EQ(bell.sleeping.load(), 0u);
}

// Nobody takes what comes: once its FIFO is full, a link over TCP wants nothing, and at the end of the stream neither.
TEST(Sleeping, ATcpLinkThatNobodyReadsWakesForEverySlotAtMost) {
  constexpr uint32_t kDepth = 4;
  const auto tcp = transports::makeTcp();
  test::EdgePair edges(1024, kDepth);
  test::MeetingPair meetings;
  auto ends = test::connect(edges, meetings, *tcp, *tcp);
  for (uint32_t i = 0; i < 2 * kDepth; ++i) {
    link::SendEnd& send = ends[0]->send;
    send.driver->drive();
    if (send.hasRoom()) send.post({}, 1024);
  }
  while (ends[0]->send.driver->sending()) ends[0]->send.driver->drive();
  ends[0].reset();
  uint32_t woken = 0;
  for (int i = 0; i < 100; ++i) woken += sleepOn({ends[1]->recv.driver}) ? 1 : 0;
  EXPECT_GE(woken, 1u);
  EXPECT_LE(woken, 2 * kDepth + 1);
}

// Whoever drives the links of a GPU, which rings no bell: soon after a move it only gives way, later it sleeps.
TEST(Sleeping, WhoAttendsToAGpuThatMovesNothingSleeps) {
  Reader reader;
  Attendance attendance;
  const auto pause = [&](bool busy) { return attendance.pause(busy, [&](Sleeper& s) { s.watch(reader); }); };
  // Where others compute on this core it sleeps then too, for a while (Crowd): until a yield has been short.
  const auto givesWaySoonAfterAMove = [&] {
    for (attendance.moved(); pause(true); attendance.moved())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  EXPECT_TRUE(pause(false)) << "nothing runs";
  givesWaySoonAfterAMove();
  int given = 1;
  while (!pause(true)) ASSERT_LT(++given, 1'000'000);
  rusage begin{}, end{};
  ::getrusage(RUSAGE_THREAD, &begin);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pause(true));
  ::getrusage(RUSAGE_THREAD, &end);
  EXPECT_GE(end.ru_nvcsw - begin.ru_nvcsw, 5);
  EXPECT_EQ(reader.turns(), 0);
  reader.post();
  EXPECT_TRUE(pause(true));
  EXPECT_EQ(reader.turns(), 1) << "what comes ends the sleep, and is taken";
  givesWaySoonAfterAMove();
}

}  // namespace
}  // namespace tutti::engine
