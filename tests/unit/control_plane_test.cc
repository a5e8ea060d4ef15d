#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>

#include "control_ranks.h"
#include "job/ranks.h"
#include "wire/listener.h"

namespace tutti::control::test {
namespace {

class PlaneOfSize : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, PlaneOfSize, testing::Values(1, 2, 3, 4, 7, 16, 64));

TEST_P(PlaneOfSize, EveryRankHasEveryCard) {
  const int size = GetParam();
  const auto planes = joinAll(size);
  for (int r = 0; r < size; ++r) {
    EXPECT_EQ(planes[size_t(r)]->rank(), r);
    EXPECT_EQ(planes[size_t(r)]->size(), size);
    EXPECT_FALSE(planes[size_t(r)]->failed());
    for (int p = 0; p < size; ++p) EXPECT_EQ(toText(planes[size_t(r)]->info(p)), "card of " + std::to_string(p));
  }
}

TEST(Plane, WrongPlacesAreTold) {
  EXPECT_EQ(wrongPlace(3, 4), std::nullopt);
  EXPECT_EQ(wrongPlace(4, 4), "ranks go from 0 to 3");
  EXPECT_EQ(wrongPlace(-1, 1), "ranks go from 0 to 0");
  EXPECT_EQ(wrongPlace(0, 0), "there can be 1 to 16384 ranks");
  EXPECT_EQ(wrongPlace(0, std::numeric_limits<int>::max()), "there can be 1 to 16384 ranks");
}

// errno is of whatever was tried last, and says nothing where nothing was tried.
TEST(Plane, WhyItCannotListenIsTold) {
  Reactor reactor;
  Listener::Request request;
  request.tcp = false;
  request.network.unixSockets = false;
  errno = 0;
  const auto listen = [&] { Listener(reactor, request, [](const auto&, Frame&) {}); };
  EXPECT_NE(thrownBy(listen).text.find("no network interface has an address"), std::string::npos);
  request.network.unixSockets = true;
  request.unixNames = {"tutti-listen-test-" + std::to_string(::getpid())};
  Listener first(reactor, request, [](const auto&, Frame&) {});
  const std::string text = thrownBy(listen).text;
  EXPECT_NE(text.find(request.unixNames[0] + ": Address already in use. Another job"), std::string::npos) << text;
}

TEST_P(PlaneOfSize, GathersManyRounds) {
  const int size = GetParam();
  const auto planes = joinAll(size);
  inThreads(size, [&](int r) {
    for (int round = 0; round < 50; ++round) {
      const auto all = planes[size_t(r)]->allGather(toBytes(fmt::format("{}/{}", r, round)), soon());
      ASSERT_EQ(all.size(), size_t(size));
      for (int p = 0; p < size; ++p) ASSERT_EQ(toText(all[size_t(p)]), fmt::format("{}/{}", p, round));
    }
  });
}

TEST(Plane, GathersBigAndEmptyBlobs) {
  constexpr int kSize = 7;
  const auto planes = joinAll(kSize);
  const auto blobOf = [](int rank, int round) {
    Bytes blob(rank % 3 == 1 ? 0 : size_t{1} << 20);
    for (size_t i = 0; i < blob.size(); ++i) blob[i] = std::byte(i * 7 + size_t(rank) + size_t(round));
    return blob;
  };
  inThreads(kSize, [&](int r) {
    for (int round = 0; round < 3; ++round) {
      const auto all = planes[size_t(r)]->allGather(blobOf(r, round), soon());
      for (int p = 0; p < kSize; ++p) ASSERT_TRUE(all[size_t(p)] == blobOf(p, round)) << p;
    }
  });
}

TEST_P(PlaneOfSize, MailArrivesInOrderBetweenAllPairs) {
  const int size = GetParam(), messages = size > 16 ? 4 : 40;
  const auto planes = joinAll(size);
  inThreads(size, [&](int r) {
    Plane& plane = *planes[size_t(r)];
    for (int i = 0; i < messages; ++i)
      for (int p = 0; p < size; ++p)
        for (const uint64_t key : {5ULL, ~0ULL}) plane.post(p, key, toBytes(fmt::format("{}>{} {} {}", r, p, key, i)));
    for (int p = 0; p < size; ++p)
      for (const uint64_t key : {~0ULL, 5ULL})
        for (int i = 0; i < messages; ++i)
          ASSERT_EQ(toText(awaitMail(plane, p, key)), fmt::format("{}>{} {} {}", p, r, key, i));
    for (int p = 0; p < size; ++p) ASSERT_FALSE(plane.poll(p, 5).has_value());
  });
}

// Whoever sleeps until there is mail needs no look at the mailbox meanwhile.
TEST(Plane, TellsOfMailAsLongAsThatIsWanted) {
  const auto planes = joinAll(2);
  std::atomic<int> news{0};
  planes[1]->whenNews([&] { ++news; });
  planes[0]->post(1, 5, toBytes("first"));
  EXPECT_EQ(toText(awaitMail(*planes[1], 0, 5)), "first");
  planes[1]->whenNews({});  // waits for who is telling
  EXPECT_GE(news.load(), 1);
  const int before = news.load();
  planes[0]->post(1, 5, toBytes("second"));
  EXPECT_EQ(toText(awaitMail(*planes[1], 0, 5)), "second");
  EXPECT_EQ(news.load(), before);
}

void exchangeOver(int fd, int self, int peer) {
  ASSERT_EQ(::send(fd, &self, sizeof self, MSG_NOSIGNAL), int(sizeof self));
  int got = -1;
  pollfd ready{fd, POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 60000), 1);
  ASSERT_EQ(::recv(fd, &got, sizeof got, MSG_WAITALL), int(sizeof got));
  ASSERT_EQ(got, peer);
}

TEST(Plane, StreamsOfBothKindsBetweenAllPairs) {
  constexpr int kSize = 7;
  const auto planes = joinAll(kSize);
  inThreads(kSize, [&](int r) {
    Plane& plane = *planes[size_t(r)];
    for (int p = 0; p < kSize; ++p)
      for (const auto kind : {StreamKind::kUnix, StreamKind::kTcp})
        if (p != r) plane.requestStream(p, kind == StreamKind::kUnix ? 1 : 2, kind);
    for (int p = 0; p < kSize; ++p)
      for (const uint64_t key : {2, 1})
        if (p != r) {
          const UniqueFd fd = awaitStream(plane, p, key);
          int domain = 0;
          socklen_t bytes = sizeof domain;
          ::getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
          ASSERT_EQ(domain == AF_UNIX, key == 1);
          exchangeOver(fd.get(), r, p);
        }
  });
}

}  // namespace
}  // namespace tutti::control::test
