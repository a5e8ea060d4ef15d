// The judge of rounded results: sums in any order pass, and what roundings do not explain does not.
#include "faults/support/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "faults/support/values.h"

namespace tutti::faults {
namespace {

constexpr int kRanks = 5;
constexpr size_t kCount = 400;

template <class Real = float>
std::vector<Real> contributionOf(const Rounding& rounding, int rank) {
  std::vector<Real> values(kCount);
  rounding.contribute(reinterpret_cast<std::byte*>(values.data()), rank, 0, kCount);
  return values;
}

template <class Combine>
std::vector<float> reduce(const Rounding& rounding, const std::vector<int>& order, Combine combine) {
  std::vector<float> result = contributionOf(rounding, order.front());
  for (size_t i = 1; i < order.size(); ++i) {
    const std::vector<float> next = contributionOf(rounding, order[i]);
    for (size_t e = 0; e < kCount; ++e) result[e] = combine(result[e], next[e]);
  }
  return result;
}

template <class Real>
std::string judge(const Rounding& rounding, const std::vector<Real>& result) {
  return rounding.judge(reinterpret_cast<const std::byte*>(result.data()), 0, kCount);
}

const auto kAdd = [](float a, float b) { return a + b; };

class JudgeOfRoundings : public testing::TestWithParam<uint64_t> {};

TEST_P(JudgeOfRoundings, TakesSumsInAnyOrder) {
  const Rounding rounding(tuttiFloat32, tuttiSum, kRanks, GetParam());
  EXPECT_EQ(judge(rounding, reduce(rounding, {0, 1, 2, 3, 4}, kAdd)), "");
  EXPECT_EQ(judge(rounding, reduce(rounding, {3, 0, 4, 2, 1}, kAdd)), "");
}

TEST_P(JudgeOfRoundings, TakesProductsAndAverages) {
  const Rounding products(tuttiFloat32, tuttiProd, kRanks, GetParam());
  EXPECT_EQ(judge(products, reduce(products, {4, 1, 2, 0, 3}, [](float a, float b) { return a * b; })), "");
  const Rounding averages(tuttiFloat32, tuttiAvg, kRanks, GetParam());
  std::vector<float> sums = reduce(averages, {0, 1, 2, 3, 4}, kAdd);
  for (float& sum : sums) sum /= kRanks;
  EXPECT_EQ(judge(averages, sums), "");
}

TEST_P(JudgeOfRoundings, SeesARankThatIsMissingOrCountsTwice) {
  const Rounding rounding(tuttiFloat32, tuttiSum, kRanks, GetParam());
  EXPECT_NE(judge(rounding, reduce(rounding, {0, 1, 2, 3}, kAdd)), "");
  EXPECT_NE(judge(rounding, reduce(rounding, {0, 1, 2, 3, 4, 2}, kAdd)), "");
}

TEST_P(JudgeOfRoundings, WantsMaximaExactly) {
  const Rounding rounding(tuttiFloat32, tuttiMax, kRanks, GetParam());
  const auto larger = [](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); };
  std::vector<float> result = reduce(rounding, {0, 1, 2, 3, 4}, larger);
  EXPECT_EQ(judge(rounding, result), "");
  result[7] = std::nextafter(result[7], 0.0f);
  EXPECT_EQ(judge(rounding, result).substr(0, 10), "element 7:");
}

// Half of the smallest double is nothing that a double can say: the judge must not reckon in one.
TEST_P(JudgeOfRoundings, TakesTheSmallestDoubles) {
  constexpr int kTwo = 2;
  const Rounding rounding(tuttiFloat64, kPreMulSum, kTwo, GetParam());
  std::vector<double> sums(kCount);
  for (int rank = 0; rank < kTwo; ++rank) {
    double factor = 0;
    rounding.factor(reinterpret_cast<std::byte*>(&factor), rank);
    const std::vector<double> values = contributionOf<double>(rounding, rank);
    for (size_t e = 0; e < kCount; ++e) sums[e] += values[e] * factor;
  }
  EXPECT_EQ(judge(rounding, sums), "");
}

// Near one, small ones, near one, any bits.
INSTANTIATE_TEST_SUITE_P(Salts, JudgeOfRoundings, testing::Values(10, 11, 123456, 654321));

// Of numbers near one an error of a few units in the last place shows.
TEST(RoundingsJudged, SeesAnErrorOfAFewUnits) {
  const Rounding rounding(tuttiFloat32, tuttiSum, kRanks, 2);
  std::vector<float> result = reduce(rounding, {0, 1, 2, 3, 4}, kAdd);
  result[9] += 64 * 0x1p-23f;
  EXPECT_EQ(judge(rounding, result).substr(0, 10), "element 9:")
      << "each is below 4, and so the bound below 40 times 2^-23";
}

// One rank's sum is what it contributed, and neither an infinity nor NaN.
TEST(RoundingsJudged, KnowsInfinitiesAndNanOfEachType) {
  struct Case {
    tuttiDataType_t type;
    uint16_t infinity, nan;
  };
  for (const Case& c :
       {Case{tuttiFloat16, 0x7c00, 0x7e00}, Case{tuttiBfloat16, 0x7f80, 0x7fc0}, Case{tuttiFloat8e5m2, 0x7c, 0x7f}}) {
    const Rounding rounding(c.type, tuttiSum, 1, 2);
    std::byte own[2];
    rounding.contribute(own, 0, 0, 1);
    EXPECT_EQ(rounding.judge(own, 0, 1), "") << nameOf(c.type);
    for (const uint16_t wrong : {c.infinity, c.nan}) {
      std::memcpy(own, &wrong, sizeof own);
      EXPECT_NE(rounding.judge(own, 0, 1), "") << nameOf(c.type);
    }
  }
}

}  // namespace
}  // namespace tutti::faults
