// What a peer can do that is no tutti, or no longer a healthy one: garbage, torn frames, closed and reset streams,
// wrong files, wrong tickets. The link fails with a text that names the peer, and nothing crashes or leaks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "base/error.h"
#include "link/edge_memory.h"
#include "support/open_files.h"
#include "support/traffic_generator.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/fd_exchange.h"
#include "transports/shm/shm.h"
#include "transports/tcp/frame.h"
#include "transports/tcp/tcp.h"
#include "window/own_window.h"

namespace tutti::test {
namespace {

using transports::DataFrame;

constexpr uint32_t kSlotBytes = 40'000, kDepth = 4;

// Rank 2 has a real end; the test itself holds the other end of the stream and plays rank 5.
class StrangerTest : public testing::Test {
 protected:
  void open(std::unique_ptr<link::Transport> transport, link::StreamKind kind) {
    transport_ = std::move(transport);
    setup_ = transport_->open(edges_.edge(0), *meetings_.ends[0]);
    meetings_.ends[1]->requestStream(kind);
    stranger_ = std::move(meetings_.ends[1]->pollStream()->fd);
  }
  void openTcp() {
    open(transports::makeTcp(), link::StreamKind::kTcp);
    connection_ = setup_->advance();
    ASSERT_TRUE(connection_);
  }
  void say(const void* data, size_t bytes) {
    ASSERT_EQ(::send(stranger_.get(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  // Drives until the link fails; what it says then, "" if it does not.
  std::string failure() {
    for (int i = 0; i < 20'000; ++i) {
      if (connection_->recv.driver->progress() == link::Progress::kFailed) return connection_->recv.driver->error();
      std::this_thread::yield();
    }
    return "";
  }
  bool arrives() {
    for (int i = 0; i < 20'000 && !connection_->recv.ready(); ++i) {
      if (connection_->recv.driver->progress() == link::Progress::kFailed) return false;
      std::this_thread::yield();
    }
    return connection_->recv.ready();
  }
  // Of shm: what its set-up throws once the stranger has spoken.
  std::string setupFailure() {
    try {
      for (int i = 0; i < 1000; ++i)
        if (setup_->advance()) return "";
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  }

  EdgePair edges_{kSlotBytes, kDepth};
  MeetingPair meetings_;
  std::unique_ptr<link::Transport> transport_;
  std::unique_ptr<link::Setup> setup_;
  std::unique_ptr<link::Connection> connection_;
  UniqueFd stranger_;
};

void expectNamesPeer(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << text;
  EXPECT_NE(text.find("rank 5 (highhost, 127.0.0.1:"), std::string::npos) << text;
}

TEST_F(StrangerTest, ClosesAtOnce) {
  openTcp();
  stranger_.reset();
  expectNamesPeer(failure(), "was closed by the peer");
  EXPECT_EQ(connection_->send.driver->progress(), link::Progress::kFailed) << "a failure is for good";
}

TEST_F(StrangerTest, ClosesAfterASlotThatStillArrives) {
  openTcp();
  DataFrame frame{.bytes = 5, .sequence = 1, .fingerprint = {}};
  say(&frame, sizeof frame);
  say("hello", 5);
  stranger_.reset();
  ASSERT_TRUE(arrives());
  for (int i = 0; i < 100; ++i) EXPECT_NE(connection_->recv.driver->progress(), link::Progress::kFailed);
  EXPECT_EQ(std::memcmp(connection_->recv.payload(5), "hello", 5), 0);
  connection_->recv.release();
  expectNamesPeer(failure(), "was closed by the peer");
}

TEST_F(StrangerTest, ClosesInTheMiddleOfASlot) {
  openTcp();
  DataFrame frame{.bytes = 100, .sequence = 1, .fingerprint = {}};
  say(&frame, sizeof frame);
  say("half", 4);
  stranger_.reset();
  expectNamesPeer(failure(), "ended in the middle of a slot");
}

TEST_F(StrangerTest, ClosesInTheMiddleOfAFrame) {
  openTcp();
  DataFrame frame{.bytes = 100, .sequence = 1, .fingerprint = {}};
  say(&frame, 7);
  stranger_.reset();
  expectNamesPeer(failure(), "ended in the middle of a slot");
}

TEST_F(StrangerTest, ResetsTheConnection) {
  openTcp();
  const linger now{1, 0};
  ::setsockopt(stranger_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  stranger_.reset();
  expectNamesPeer(failure(), "failed: Connection reset by peer");
}

TEST_F(StrangerTest, LeavesWhileSlotsAreStillToBeSent) {
  openTcp();
  TrafficGenerator traffic(*connection_, 2, [](int, uint64_t) { return kSlotBytes; });
  for (int i = 0; i < 10'000 && traffic.failure().empty(); ++i) {
    if (i == 20) stranger_.reset();
    traffic.sendOne();
    traffic.drive();
  }
  EXPECT_NE(traffic.failure().find("rank 5 (highhost, 127.0.0.1:"), std::string::npos) << traffic.failure();
}

TEST_F(StrangerTest, SpeaksAnotherLanguage) {
  openTcp();
  const std::string request = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
  say(request.data(), request.size());
  expectNamesPeer(failure(), "carries something else than frames");
}

TEST_F(StrangerTest, AnnouncesMoreThanASlotHolds) {
  openTcp();
  DataFrame frame{.bytes = kSlotBytes + 1, .sequence = 1, .fingerprint = {}};
  say(&frame, sizeof frame);
  expectNamesPeer(failure(), "announced 40001 bytes for a slot of 40000");
}

TEST_F(StrangerTest, SendsOutOfOrder) {
  openTcp();
  for (const uint64_t sequence : {1u, 2u, 2u}) {
    DataFrame frame{.bytes = 0, .sequence = sequence, .fingerprint = {}};
    say(&frame, sizeof frame);
  }
  expectNamesPeer(failure(), "delivered slot 2 where 3 was due");
}

TEST_F(StrangerTest, SendsByteByByte) {
  openTcp();
  std::vector<std::byte> bytes;
  const auto append = [&](const void* data, size_t count) {
    const auto* raw = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), raw, raw + count);
  };
  for (uint64_t slot = 0; slot < 3; ++slot) {
    const std::string payload(slot * 50, static_cast<char>('a' + slot));
    DataFrame frame{
        .bytes = static_cast<uint32_t>(payload.size()), .sequence = slot + 1, .fingerprint = {.count = slot}};
    append(&frame, sizeof frame);
    append(payload.data(), payload.size());
  }
  for (const std::byte one : bytes) {
    say(&one, 1);
    connection_->recv.driver->progress();
  }
  for (uint64_t slot = 0; slot < 3; ++slot) {
    ASSERT_TRUE(arrives());
    EXPECT_EQ(connection_->recv.header().fingerprint.count, slot);
    const std::string expected(slot * 50, static_cast<char>('a' + slot));
    ASSERT_EQ(connection_->recv.header().bytes, expected.size());
    EXPECT_EQ(std::memcmp(connection_->recv.payload(expected.size()), expected.data(), expected.size()), 0);
    connection_->recv.release();
  }
}

// Valid frames with a few bits turned, from many seeds: whatever happens, it is a slot or a failure.
TEST(StrangerFuzz, NeverBreaksTheLink) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed);
    EdgePair edges(2000, 4);
    MeetingPair meetings;
    const auto tcp = transports::makeTcp();
    const auto setup = tcp->open(edges.edge(0), *meetings.ends[0]);
    meetings.ends[1]->requestStream(link::StreamKind::kTcp);
    const UniqueFd stranger = std::move(meetings.ends[1]->pollStream()->fd);
    const auto connection = setup->advance();
    std::vector<std::byte> stream;
    for (uint64_t slot = 0; slot < 20; ++slot) {
      const DataFrame frame{.bytes = static_cast<uint32_t>(random() % 2001), .sequence = slot + 1, .fingerprint = {}};
      const auto* raw = reinterpret_cast<const std::byte*>(&frame);
      stream.insert(stream.end(), raw, raw + sizeof frame);
      stream.resize(stream.size() + frame.bytes);
    }
    for (uint64_t turned = 0; turned < seed % 8; ++turned)
      stream[random() % stream.size()] ^= std::byte(1u << random() % 8);
    ASSERT_EQ(::send(stranger.get(), stream.data(), stream.size(), MSG_NOSIGNAL), static_cast<ssize_t>(stream.size()));
    ::shutdown(stranger.get(), SHUT_WR);
    uint64_t taken = 0;
    link::Progress last = link::Progress::kIdle;
    for (int i = 0; i < 20'000 && last != link::Progress::kFailed; ++i) {
      last = connection->recv.driver->progress();
      for (; connection->recv.ready(); ++taken) {
        ASSERT_LE(connection->recv.header().bytes, 2000u);
        connection->recv.release();
      }
    }
    EXPECT_EQ(last, link::Progress::kFailed) << seed;
    if (seed % 8 == 0) {
      EXPECT_EQ(taken, 20u);
    }
  }
}

TEST_F(StrangerTest, GreetsShmWithGarbage) {
  open(transports::makeShm(), link::StreamKind::kUnix);
  const std::string garbage(sizeof(transports::ShmGreeting), 'x');
  say(garbage.data(), garbage.size());
  EXPECT_NE(setupFailure().find("does not speak shm"), std::string::npos);
}

TEST_F(StrangerTest, ClosesShmEarly) {
  open(transports::makeShm(), link::StreamKind::kUnix);
  stranger_.reset();
  EXPECT_NE(setupFailure(), "");
}

constexpr size_t kRegionBytes = 2 * link::Fifo::bytesFor(4096, 4, slots::kLines);
constexpr transports::ShmGreeting kRightGreeting{
    transports::kShmMagic, transports::kShmVersion, 4096, 4, kRegionBytes, 0, 0, {}, 0};

// The higher rank's end, so that the region comes from the stranger.
std::string takeShm(const transports::ShmGreeting& greeting, std::vector<int> files) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto shm = transports::makeShm();
  const auto setup = shm->open(edges.edge(1), *meetings.ends[1]);
  meetings.ends[0]->requestStream(link::StreamKind::kUnix);
  transports::FdExchange exchange(std::move(meetings.ends[0]->pollStream()->fd), greeting, std::move(files));
  try {
    for (int i = 0; i < 1000; ++i) {
      exchange.advance();
      if (setup->advance()) return "connected";
    }
  } catch (const Error& failure) {
    return failure.what();
  }
  return "stuck";
}

TEST(ShmStranger, MustPassExactlyWhatAnEdgeNeeds) {
  const UniqueFd region = createMemoryFile("tutti-test", kRegionBytes);
  const UniqueFd bell = createMemoryFile("tutti-test", link::kBellFileBytes);
  const int good = region.get();
  EXPECT_EQ(takeShm(kRightGreeting, {good}), "connected");
  EXPECT_NE(takeShm(kRightGreeting, {}).find("other files than an edge needs"), std::string::npos);
  EXPECT_NE(takeShm(kRightGreeting, {good, good}).find("other files than an edge needs"), std::string::npos);
  auto wrong = kRightGreeting;
  wrong.version = 9;
  EXPECT_NE(takeShm(wrong, {good}).find("does not speak shm version"), std::string::npos);
  wrong = kRightGreeting;
  wrong.depth = 8;
  EXPECT_NE(takeShm(wrong, {good}).find("8 slots of 4096 bytes"), std::string::npos);
  wrong = kRightGreeting;
  wrong.bells = 1;
  EXPECT_EQ(takeShm(wrong, {good, bell.get()}), "connected");
  EXPECT_NE(takeShm(wrong, {good, good}).find(fmt::format("bytes instead of {}", link::kBellFileBytes)),
            std::string::npos);
  wrong.bells = 77;
  EXPECT_NE(takeShm(wrong, {good, good}).find("other files than an edge needs"), std::string::npos);
}

// What is no window costs no link: it goes without.
TEST(ShmStranger, MayPassAWindow) {
  const UniqueFd region = createMemoryFile("tutti-test", kRegionBytes);
  const UniqueFd window = createMemoryFile("tutti-test", 2 * window::kPieceBytes);
  auto greeting = kRightGreeting;
  greeting.lends = greeting.windows = 1;
  for (const int file : {window.get(), region.get()}) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(takeShm(greeting, {region.get(), file}), "connected");
    testing::internal::GetCapturedStderr();
  }
  EXPECT_NE(takeShm(greeting, {region.get()}).find("other files than an edge needs"), std::string::npos);
  greeting.windows = 2;
  EXPECT_NE(takeShm(greeting, {region.get(), window.get(), window.get()}).find("other files"), std::string::npos);
}

// A file that is right for now, and whose maker could make it shorter under the one that has mapped it.
UniqueFd unsealed(UniqueFd file, size_t bytes) {
  EXPECT_TRUE(file) << errnoText(errno);
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  return file;
}

UniqueFd plainFile(const char* folder, size_t bytes) {
  return unsealed(UniqueFd(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)), bytes);
}

TEST(ShmStranger, MustPassMemoryThatCanNotBecomeShorter) {
  auto withBell = kRightGreeting;
  withBell.bells = 1;
  const UniqueFd region = createMemoryFile("tutti-test", kRegionBytes);
  const auto expectRefused = [&](const UniqueFd& file, const UniqueFd& bell, const char* why) {
    EXPECT_NE(takeShm(kRightGreeting, {file.get()}).find(std::string("the peer's memory file") + why),
              std::string::npos);
    EXPECT_NE(takeShm(withBell, {region.get(), bell.get()}).find(std::string("the file of a peer's bell") + why),
              std::string::npos);
  };
  const auto memfd = [](size_t bytes) {
    return unsealed(UniqueFd(::memfd_create("tutti-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes);
  };
  constexpr const char* kUnsealed = " is not sealed";
  expectRefused(memfd(kRegionBytes), memfd(link::kBellFileBytes), kUnsealed);
  const UniqueFd half = memfd(kRegionBytes), halfBell = memfd(link::kBellFileBytes);
  for (const UniqueFd* file : {&half, &halfBell}) ASSERT_EQ(::fcntl(file->get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  expectRefused(half, halfBell, kUnsealed);
  for (const char* folder : {"/tmp", "/dev/shm"})
    if (std::filesystem::exists(folder))
      expectRefused(plainFile(folder, kRegionBytes), plainFile(folder, link::kBellFileBytes), kUnsealed);
  for (const ssize_t more : {-1, 1, -4096, 4096}) {
    const auto off = [&](size_t bytes) { return createMemoryFile("tutti-test", bytes + static_cast<size_t>(more)); };
    expectRefused(off(kRegionBytes), off(link::kBellFileBytes), " has ");
  }
  const UniqueFd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  expectRefused(folder, folder, kUnsealed);
}

// Neither end can take it away, nor the seals.
TEST(ShmStranger, CanNotShortenWhatItWasGiven) {
  const UniqueFd file = createMemoryFile("tutti-test", kRegionBytes);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  EXPECT_NE(::ftruncate(file.get(), 2 * kRegionBytes), 0);
  EXPECT_NE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(P2pStranger, HasNoUseForAWrongTicket) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto p2p = transports::makeP2p();
  const auto taker = p2p->open(edges.edge(1), *meetings.ends[1]);
  meetings.ends[0]->put(Writer().value(uint64_t{0xdeadbeef}).take());
  EXPECT_THROW(taker->advance(), Error);
  meetings.ends[0]->put(Writer().value(uint8_t{1}).take());
  EXPECT_THROW(taker->advance(), Error);
}

TEST(P2pStranger, CanNotGuessATicket) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto p2p = transports::makeP2p();
  std::array<std::unique_ptr<link::Setup>, 2> makers;
  std::array<uint64_t, 2> tickets{};
  for (size_t i = 0; i < 2; ++i) {
    makers[i] = p2p->open(edges.edge(0), *meetings.ends[0]);
    tickets[i] = Reader(meetings.ends[1]->poll().value()).value<uint64_t>();
  }
  constexpr uint64_t kNear = 1 << 20;
  EXPECT_GT(tickets[1] - tickets[0] + kNear, 2 * kNear);
}

TEST(P2pStranger, FindsNothingOnceTheMakerHasGivenUp) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto p2p = transports::makeP2p();
  p2p->open(edges.edge(0), *meetings.ends[0]).reset();
  const auto taker = p2p->open(edges.edge(1), *meetings.ends[1]);
  EXPECT_THROW(taker->advance(), Error);
}

// The mapping alone keeps the memory, and no name appears anywhere. Of the peer's window one descriptor stays open, of
// this process here, at both ends together, as long as they are there.
TEST(Shm, KeepsNoDescriptorAndHasNoName) {
  std::string why;
  ASSERT_GE(window::OwnWindow::ofProcess().fileForPeers(why), 0) << why;
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto shm = transports::makeShm();
  const size_t before = openFiles();
  auto ends = connect(edges, meetings, *shm, *shm);
  EXPECT_EQ(openFiles(), before + 1);
  for (auto& end : ends) end.reset();
  EXPECT_EQ(openFiles(), before);
  if (!std::filesystem::exists("/dev/shm")) return;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    EXPECT_EQ(entry.path().filename().string().find("tutti"), std::string::npos) << entry.path();
}

TEST(Tcp, ClosesItsSocketWithTheConnection) {
  EdgePair edges(4096, 4);
  MeetingPair meetings;
  const auto tcp = transports::makeTcp();
  const size_t before = openFiles();
  auto ends = connect(edges, meetings, *tcp, *tcp);
  EXPECT_EQ(openFiles(), before + 2);
  ends[0].reset();
  ends[1].reset();
  EXPECT_EQ(openFiles(), before);
}

}  // namespace
}  // namespace tutti::test
