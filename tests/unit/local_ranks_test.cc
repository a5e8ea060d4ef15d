// Ranks that are in one process, and those that only say so.
#include "control/local_ranks.h"

#include <gtest/gtest.h>

#include "comm/communicator.h"
#include "control_processes.h"
#include "support/join_plane.h"

namespace tutti::control::test {
namespace {

TEST(RanksOfAProcess, KnowEachOther) {
  auto planes = joinAll(3);
  inThreads(3, [&](int rank) {
    planes[size_t(rank)]->allGather({}, soon());
    for (int other = 0; other < 3; ++other) EXPECT_TRUE(planes[size_t(rank)]->isHere(other)) << other;
  });
}

TEST(RanksOfAProcess, AreNotThoseOfAnother) {
  const UniqueId id = openRoot({}, soon());
  const pid_t other = startRank(id, 1, 2, "wait");
  const auto plane = joinPlane(requestFor(id, 0, 2));
  EXPECT_TRUE(plane->isHere(0));
  EXPECT_FALSE(plane->isHere(1));
  ::kill(other, SIGKILL);
  exitOf(other);
}

// A rank takes part in several communicators, with the same numbers.
TEST(RanksOfAProcess, AreOfOneCommunicator) {
  Digest one{}, another{};
  another[0] = std::byte{1};
  auto ranks = LocalRanks::of(one);
  ranks->add(3);
  EXPECT_TRUE(LocalRanks::of(one)->has(3));
  EXPECT_FALSE(LocalRanks::of(one)->has(2));
  EXPECT_FALSE(LocalRanks::of(another)->has(3));
  ranks.reset();
  EXPECT_FALSE(LocalRanks::of(one)->has(3)) << "none of them is left";
}

// Its addresses would be followed.
TEST(RanksOfAProcess, RefuseAnothersThatSaysItIsOneOfThem) {
  const UniqueId id = openRoot({}, soon());
  const comm::Config config;
  const comm::Self self = comm::Self::find(config);
  topology::PeerInfo info = topology::decodePeerInfo(self.info);
  info.device = 0;
  const pid_t other = startRank({id, 1, 2, "claims", 20000, toText(topology::encode(info))});
  const Thrown thrown = thrownBy([&] { comm::Communicator::join(id, 0, 2, config, self); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
  EXPECT_EQ(thrown.text.find("rank 1 ("), 0u) << thrown.text;
  EXPECT_NE(thrown.text.find("says that it is in the process of rank 0 ("), std::string::npos) << thrown.text;
  EXPECT_EQ(exitOf(other), 0) << "it is told of a failure";
}

}  // namespace
}  // namespace tutti::control::test
