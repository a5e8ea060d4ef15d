// Communicators made from communicators, and all of them at once.
#include <gtest/gtest.h>

#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

TEST(Split, ColorsAndKeysDecideWhoAndInWhichOrder) {
  constexpr int kRanks = 5;
  withCommunicators(kRanks, testConfig(), [](tuttiComm_t comm, int rank) {
    tuttiComm_t child = nullptr;
    const int color = rank == 4 ? TUTTI_SPLIT_NOCOLOR : rank % 2;
    CHECK_TUTTI(tuttiCommSplit(comm, color, -rank, &child, nullptr));  // the key turns the order round
    if (rank == 4) {
      EXPECT_EQ(child, nullptr);
      return;
    }
    int size = 0, childRank = -1;
    CHECK_TUTTI(tuttiCommCount(child, &size));
    CHECK_TUTTI(tuttiCommUserRank(child, &childRank));
    EXPECT_EQ(size, 2);
    EXPECT_EQ(childRank, rank < 2 ? 1 : 0);
    int sum = rank;
    CHECK_TUTTI(tuttiAllReduce(&sum, &sum, 1, tuttiInt32, tuttiSum, child, nullptr));
    EXPECT_EQ(sum, rank % 2 == 0 ? 2 : 4);
    CHECK_TUTTI(tuttiCommDestroy(child));
  });
}

TEST(Split, AChildOutlivesItsParent) {
  tuttiUniqueId id;
  CHECK_TUTTI(tuttiGetUniqueId(&id));
  runRanks(3, [&](int rank) {
    tuttiComm_t parent = nullptr, child = nullptr;
    CHECK_TUTTI(tuttiCommInitRank(&parent, 3, id, rank));
    CHECK_TUTTI(tuttiCommSplit(parent, 0, rank, &child, nullptr));
    CHECK_TUTTI(tuttiCommDestroy(parent));
    std::vector<float> data(10'000, 1.0f);
    CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), data.size(), tuttiFloat32, tuttiSum, child, nullptr));
    EXPECT_EQ(data, std::vector<float>(10'000, 3.0f));
    CHECK_TUTTI(tuttiCommDestroy(child));
  });
}

TEST(Split, ManyCommunicatorsOneAfterTheOther) {
  withCommunicators(4, testConfig(), [](tuttiComm_t comm, int rank) {
    for (int i = 0; i < 5; ++i) {
      tuttiComm_t child = nullptr;
      CHECK_TUTTI(tuttiCommSplit(comm, rank / 2, 0, &child, nullptr));
      long value = rank;
      CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt64, tuttiMax, child, nullptr));
      EXPECT_EQ(value, rank / 2 * 2 + 1);
      CHECK_TUTTI(tuttiCommDestroy(child));
    }
  });
}

}  // namespace
