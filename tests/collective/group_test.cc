// Groups: any mix of calls and communicators, in any order that each rank may choose.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

constexpr size_t kLong = 300'000;  // more than all slots of a link: a send cannot end before its receive began

std::vector<int> filled(size_t count, int value) { return std::vector<int>(count, value); }

TEST(Group, SendsAndReceivesInOppositeOrders) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    const int peer = 1 - rank;
    auto out = filled(kLong, rank + 1), in = filled(kLong, -1);
    for (int round = 0; round < 3; ++round) {
      CHECK_TUTTI(tuttiGroupStart());
      if (rank == 0) {
        CHECK_TUTTI(tuttiSend(out.data(), kLong, tuttiInt32, peer, comm, nullptr));
        CHECK_TUTTI(tuttiRecv(in.data(), kLong, tuttiInt32, peer, comm, nullptr));
      } else {
        CHECK_TUTTI(tuttiSend(out.data(), kLong, tuttiInt32, peer, comm, nullptr));
        CHECK_TUTTI(tuttiRecv(in.data(), kLong, tuttiInt32, peer, comm, nullptr));
      }
      CHECK_TUTTI(tuttiGroupEnd());
      EXPECT_EQ(in, filled(kLong, peer + 1));
    }
  });
}

TEST(Group, EveryoneToEveryoneInAnyOrderWithSelf) {
  constexpr int kRanks = 4;
  withCommunicators(kRanks, testConfig(), [](tuttiComm_t comm, int rank) {
    std::mt19937 random(static_cast<unsigned>(rank));
    std::vector<int> order(2 * kRanks);
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::vector<int>> out, in(kRanks, filled(kLong, -1));
    for (int peer = 0; peer < kRanks; ++peer) out.push_back(filled(kLong, rank * 10 + peer));
    for (int round = 0; round < 3; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      CHECK_TUTTI(tuttiGroupStart());
      for (const int k : order) {
        const int peer = k / 2;
        const auto at = static_cast<size_t>(peer);
        if (k % 2 == 0)
          CHECK_TUTTI(tuttiSend(out[at].data(), kLong, tuttiInt32, peer, comm, nullptr));
        else
          CHECK_TUTTI(tuttiRecv(in[at].data(), kLong, tuttiInt32, peer, comm, nullptr));
      }
      CHECK_TUTTI(tuttiGroupEnd());
      for (int peer = 0; peer < kRanks; ++peer)
        EXPECT_EQ(in[static_cast<size_t>(peer)], filled(kLong, peer * 10 + rank));
    }
  });
}

TEST(Group, CollectivesBesideMessages) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    auto sum = filled(kLong, rank + 1), out = filled(kLong, rank), in = filled(kLong, -1);
    const int next = (rank + 1) % 3, previous = (rank + 2) % 3;
    const auto collective = [&] {
      CHECK_TUTTI(tuttiAllReduce(sum.data(), sum.data(), kLong, tuttiInt32, tuttiSum, comm, nullptr));
    };
    CHECK_TUTTI(tuttiGroupStart());
    if (rank == 0) collective();
    CHECK_TUTTI(tuttiSend(out.data(), kLong, tuttiInt32, next, comm, nullptr));
    if (rank == 1) collective();
    CHECK_TUTTI(tuttiRecv(in.data(), kLong, tuttiInt32, previous, comm, nullptr));
    if (rank == 2) collective();
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(sum, filled(kLong, 6));
    EXPECT_EQ(in, filled(kLong, previous));
  });
}

// A chain in which connecting in the order of the calls would wait in a circle.
TEST(Group, LinksThatAreNotYetWantedElsewhereHoldNobodyUp) {
  withCommunicators(3, testConfig(), [](tuttiComm_t comm, int rank) {
    auto a = filled(kLong, 7), b = filled(kLong, 8), got = filled(kLong, 0), gotToo = filled(kLong, 0);
    if (rank == 0) {
      CHECK_TUTTI(tuttiGroupStart());
      CHECK_TUTTI(tuttiSend(b.data(), kLong, tuttiInt32, 2, comm, nullptr));
      CHECK_TUTTI(tuttiSend(a.data(), kLong, tuttiInt32, 1, comm, nullptr));
      CHECK_TUTTI(tuttiGroupEnd());
    } else if (rank == 1) {
      CHECK_TUTTI(tuttiRecv(got.data(), kLong, tuttiInt32, 0, comm, nullptr));
      CHECK_TUTTI(tuttiSend(got.data(), kLong, tuttiInt32, 2, comm, nullptr));
      EXPECT_EQ(got, a);
    } else {
      CHECK_TUTTI(tuttiRecv(got.data(), kLong, tuttiInt32, 1, comm, nullptr));
      CHECK_TUTTI(tuttiRecv(gotToo.data(), kLong, tuttiInt32, 0, comm, nullptr));
      EXPECT_EQ(got, a);
      EXPECT_EQ(gotToo, b);
    }
  });
}

TEST(Group, OneThreadDrivesAllRanksOfAProcess) {
  constexpr int kRanks = 4;
  tuttiComm_t comms[kRanks];
  CHECK_TUTTI(tuttiCommInitAll(comms, kRanks, nullptr));
  std::vector<std::vector<int>> data;
  for (int r = 0; r < kRanks; ++r) data.push_back(filled(kLong, r + 1));
  for (int round = 0; round < 2; ++round) {
    for (int r = 0; r < kRanks; ++r) data[static_cast<size_t>(r)] = filled(kLong, r + 1);
    CHECK_TUTTI(tuttiGroupStart());
    CHECK_TUTTI(tuttiGroupStart());  // nested: the inner end runs nothing
    for (int r = 0; r < kRanks; ++r) {
      int* at = data[static_cast<size_t>(r)].data();
      CHECK_TUTTI(tuttiAllReduce(at, at, kLong, tuttiInt32, tuttiSum, comms[r], nullptr));
    }
    CHECK_TUTTI(tuttiGroupEnd());
    CHECK_TUTTI(tuttiGroupEnd());
    for (const auto& values : data) EXPECT_EQ(values, filled(kLong, 10));
  }
  for (auto comm : comms) CHECK_TUTTI(tuttiCommDestroy(comm));
}

TEST(Group, SeveralCommunicatorsInDifferentOrders) {
  constexpr int kRanks = 3;
  withCommunicators(kRanks, testConfig(), [](tuttiComm_t comm, int rank) {
    tuttiComm_t other = nullptr;
    CHECK_TUTTI(tuttiCommSplit(comm, 0, -rank, &other, nullptr));
    auto a = filled(kLong, rank + 1), b = filled(kLong, 10 * (rank + 1));
    const auto first = [&] {
      CHECK_TUTTI(tuttiAllReduce(a.data(), a.data(), kLong, tuttiInt32, tuttiSum, comm, nullptr));
    };
    const auto second = [&] {
      CHECK_TUTTI(tuttiAllReduce(b.data(), b.data(), kLong, tuttiInt32, tuttiSum, other, nullptr));
    };
    CHECK_TUTTI(tuttiGroupStart());
    if (rank == 1)
      second(), first();
    else
      first(), second();
    CHECK_TUTTI(tuttiGroupEnd());
    EXPECT_EQ(a, filled(kLong, 6));
    EXPECT_EQ(b, filled(kLong, 60));
    CHECK_TUTTI(tuttiCommDestroy(other));
  });
}

TEST(Group, AWrongCallSpoilsItAndTheNextOneWorks) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    int value = 5;
    CHECK_TUTTI(tuttiGroupStart());
    EXPECT_EQ(tuttiAllReduce(nullptr, &value, 1, tuttiInt32, tuttiSum, comm, nullptr), tuttiInvalidArgument);
    EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidArgument);
    EXPECT_NE(std::string(tuttiGetLastError(comm)).find("send is NULL"), std::string::npos);
    CHECK_TUTTI(tuttiAllReduce(&value, &value, 1, tuttiInt32, tuttiSum, comm, nullptr));
    EXPECT_EQ(tuttiGroupEnd(), tuttiInvalidUsage);
  });
}

}  // namespace
