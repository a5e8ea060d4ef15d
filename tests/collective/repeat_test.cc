// Calls that are made again, with other buffers and other values: they take a short way, on which the result has to be
// what it is on the long one.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "support/api_ranks.h"

namespace {

using namespace tutti::test;

constexpr size_t kCounts[] = {1, 2, 8, 9, 100, 1000, 5000};
constexpr int kTimes = 4;

// Small whole numbers, exact in any order.
float valueOf(int rank, int time, size_t at) { return static_cast<float>((rank + 1) * (time + 2) + int(at % 7)); }

std::vector<float> ofRank(int rank, int time, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = valueOf(rank, time, i);
  return values;
}

// Of each element what `fold` makes of all ranks' values.
template <class Fold>
std::vector<float> folded(int ranks, int time, size_t count, Fold fold) {
  std::vector<float> result = ofRank(0, time, count);
  for (int rank = 1; rank < ranks; ++rank)
    for (size_t i = 0; i < count; ++i) result[i] = fold(result[i], valueOf(rank, time, i));
  return result;
}

struct Ranks {
  tuttiComm_t comm;
  int rank, size;
};

// Twice out of place, by buffers of their own, and twice in place.
void allReduces(const Ranks& self, size_t count) {
  for (int time = 0; time < kTimes; ++time) {
    std::vector<float> in = ofRank(self.rank, time, count), out(count, -1);
    float* const to = time < 2 ? out.data() : in.data();
    CHECK_TUTTI(tuttiAllReduce(in.data(), to, count, tuttiFloat32, tuttiSum, self.comm, nullptr));
    const auto sum = folded(self.size, time, count, std::plus<>());
    EXPECT_TRUE(std::equal(sum.begin(), sum.end(), to)) << count << " elements, time " << time;
  }
}

void averagesAndMaxima(const Ranks& self, size_t count) {
  for (int time = 0; time < kTimes; ++time)
    for (const tuttiRedOp_t op : {tuttiAvg, tuttiMax}) {
      const std::vector<float> in = ofRank(self.rank, time, count);
      std::vector<float> out(count, -1);
      CHECK_TUTTI(tuttiAllReduce(in.data(), out.data(), count, tuttiFloat32, op, self.comm, nullptr));
      auto wanted =
          folded(self.size, time, count, [op](float a, float b) { return op == tuttiAvg ? a + b : std::max(a, b); });
      if (op == tuttiAvg)
        for (float& value : wanted) value /= static_cast<float>(self.size);
      EXPECT_EQ(out, wanted) << count << " elements, time " << time;
    }
}

void gathersAndScatters(const Ranks& self, size_t count) {
  const auto ranks = static_cast<size_t>(self.size);
  for (int time = 0; time < kTimes; ++time) {
    std::vector<float> all(count * ranks, -1), part(count, -1);
    const std::vector<float> own = ofRank(self.rank, time, count), long_ = ofRank(self.rank, time, count * ranks);
    CHECK_TUTTI(tuttiAllGather(own.data(), all.data(), count, tuttiFloat32, self.comm, nullptr));
    for (int rank = 0; rank < self.size; ++rank) {
      const auto theirs = ofRank(rank, time, count);
      EXPECT_TRUE(std::equal(theirs.begin(), theirs.end(), all.begin() + static_cast<ptrdiff_t>(count) * rank));
    }
    CHECK_TUTTI(tuttiReduceScatter(long_.data(), part.data(), count, tuttiFloat32, tuttiSum, self.comm, nullptr));
    const auto sums = folded(self.size, time, count * ranks, std::plus<>());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), sums.begin() + static_cast<ptrdiff_t>(count) * self.rank));
  }
}

void broadcastsAndReduces(const Ranks& self, size_t count) {
  const int root = self.size - 1;
  for (int time = 0; time < kTimes; ++time) {
    const std::vector<float> own = ofRank(self.rank, time, count);
    std::vector<float> out(count, -1);
    CHECK_TUTTI(tuttiBroadcast(own.data(), out.data(), count, tuttiFloat32, root, self.comm, nullptr));
    EXPECT_EQ(out, ofRank(root, time, count));
    CHECK_TUTTI(tuttiReduce(own.data(), out.data(), count, tuttiFloat32, tuttiSum, root, self.comm, nullptr));
    if (self.rank == root) {
      EXPECT_EQ(out, folded(self.size, time, count, std::plus<>()));
    }
  }
}

class Repeated : public ::testing::TestWithParam<const char*> {};

TEST_P(Repeated, CallsAreExact) {
  for (const int size : {2, 3, 5}) {
    tuttiConfig_t config = testConfig();
    config.algorithm = GetParam();
    withCommunicators(size, config, [size](tuttiComm_t comm, int rank) {
      const Ranks self{comm, rank, size};
      for (const size_t count : kCounts) {
        allReduces(self, count);
        averagesAndMaxima(self, count);
        gathersAndScatters(self, count);
        broadcastsAndReduces(self, count);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Repeated,
                         ::testing::Values("ring", "tree", "oneshot", "twoshot", "halving", "bruck", "direct",
                                           "doubling", "twopass"),
                         [](const auto& algorithm) { return std::string(algorithm.param); });

// The short way looks at what comes as the long one does.
TEST(RepeatedCalls, ThatDifferAreFound) {
  withCommunicators(2, testConfig(), [](tuttiComm_t comm, int rank) {
    float in[2] = {1, 2}, out[2] = {};
    for (int time = 0; time < kTimes; ++time)
      CHECK_TUTTI(tuttiAllReduce(in, out, 2, tuttiFloat32, tuttiSum, comm, nullptr));
    const tuttiRedOp_t op = rank == 0 ? tuttiSum : tuttiMax;
    EXPECT_NE(tuttiAllReduce(in, out, 2, tuttiFloat32, op, comm, nullptr), tuttiSuccess);
    const std::string text = tuttiGetLastError(comm);
    EXPECT_NE(text.find("all-reduce #4"), std::string::npos) << text;
  });
}

}  // namespace
