// How a call is told: what is said must be so on every rank, whatever the rank knows.
#include "team/call.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

Call callOf(Collective collective, size_t count) {
  Call call;
  call.collective = collective;
  call.type = DataType::kFloat32;
  call.count = count;
  return call;
}

Call withCounts(Collective collective, std::vector<size_t> counts) {
  auto tables = std::make_shared<Tables>();
  tables->outputCounts = std::move(counts);
  Call call = callOf(collective, 0);
  call.tables = std::move(tables);
  return call;
}

TEST(CallText, CountsAreElementsOfWhatEveryRankKnows) {
  EXPECT_EQ(callOf(Collective::kAllReduce, 1).describe(42), "all-reduce #42 (float, 1 element, sum)");
  EXPECT_EQ(callOf(Collective::kBroadcast, 7).describe(3), "broadcast #3 (float, 7 elements, root 0)");
  EXPECT_EQ(withCounts(Collective::kAllGatherV, {1, 2, 0, 4}).describe(5),
            "all-gather-v #5 (float, 7 elements in all)");
  EXPECT_EQ(withCounts(Collective::kReduceScatterV, {1, 2, 0, 4}).describe(5),
            "reduce-scatter-v #5 (float, 7 elements in all, sum)");
  EXPECT_EQ(withCounts(Collective::kAllToAllV, {1, 2}).describe(5),
            "all-to-all-v #5 (float, a count for each pair of ranks)");
  EXPECT_EQ(withCounts(Collective::kGatherV, {0, 2}).describe(5), "gather-v #5 (float, a count for each rank, root 0)");
  EXPECT_EQ(callOf(Collective::kBarrier, 1).describe(9), "barrier #9");
  Call truths = callOf(Collective::kAllReduce, 2);
  truths.type = DataType::kBool;
  truths.op = ReduceOp::kBitXor;
  EXPECT_EQ(truths.describe(1), "all-reduce #1 (bool, 2 elements, bxor)");
  Call send = callOf(Collective::kSendRecv, 12);
  send.sends = true;
  send.root = 3;
  EXPECT_EQ(send.describe(5), "send to rank 3 #5 (float, 12 elements)");
}

// Also where the plan's bytes are the same.
TEST(CallText, CallsWithOtherCountsDiffer) {
  const auto mark = [](std::vector<size_t> counts) {
    return withCounts(Collective::kAllGatherV, std::move(counts)).fingerprint(0);
  };
  EXPECT_EQ(mark({1, 2, 4}), mark({1, 2, 4}));
  EXPECT_NE(mark({1, 2, 4}), mark({4, 2, 1})) << "the same in all, in other parts";
  EXPECT_NE(mark({1, 2, 4}), mark({1, 2, 5}));
  EXPECT_EQ(withCounts(Collective::kAllGatherV, {1, 2, 4}).planBytes(3), 8U);
  EXPECT_EQ(withCounts(Collective::kAllToAllV, {1, 2, 4}).planBytes(3), 0U);
}

// The root knows the counts of all ranks, every other rank its own: what they say of the call is the same.
TEST(CallText, CountsThatNobodyElseKnowsAreNoPartOfACall) {
  for (const Collective collective : {Collective::kGatherV, Collective::kScatterV}) {
    Call root = withCounts(collective, {1, 2, 4}), other = withCounts(collective, {0, 5, 0});
    root.root = other.root = 2;
    EXPECT_EQ(root.fingerprint(3), other.fingerprint(3));
    EXPECT_EQ(root.planBytes(3), 0U);
    EXPECT_FALSE(withCounts(collective, {0, 0, 0}).isOfNothing());
    const bool gathers = collective == Collective::kGatherV;
    const auto pair = [&](uint64_t toRoot) {
      return gathers ? Call::PairCounts{toRoot, 0} : Call::PairCounts{0, toRoot};
    };
    EXPECT_EQ(other.countsWith(1, 2), pair(5));
    EXPECT_EQ(other.countsWith(1, 0), Call::PairCounts{});
    EXPECT_EQ(root.countsWith(2, 1), gathers ? (Call::PairCounts{0, 2}) : (Call::PairCounts{2, 0}));
    EXPECT_FALSE(root.countsWith(2, 3));
    EXPECT_FALSE(root.countsWith(2, -1));
  }
}

}  // namespace
}  // namespace tutti::comm
