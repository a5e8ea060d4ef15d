// The narrow floating-point types, pattern by pattern, against values worked out from the formats' fields.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/host/combine.h"
#include "unit/number_oracle.h"

namespace tutti::kernels {
namespace {

std::vector<DataType> narrowFloats() {
  std::vector<DataType> types;
  for (const DataTypeRow& row : kDataTypeRows)
    if (row.isFloat() && row.bytes < sizeof(float)) types.push_back(row.type);
  return types;
}

class Convert : public testing::TestWithParam<DataType> {
 protected:
  DataType type() const { return GetParam(); }
  uint32_t patterns() const { return 1u << (8 * sizeOf(type())); }
  void expectNearest(float value) const {
    ASSERT_EQ(fromFloat(type(), value), oracle::nearest(type(), value)) << std::hexfloat << value;
    ASSERT_EQ(fromFloat(type(), -value), oracle::nearest(type(), -value)) << std::hexfloat << -value;
  }
};

TEST_P(Convert, EveryPatternHasTheValueOfItsFields) {
  for (uint32_t bits = 0; bits < patterns(); ++bits) {
    const double expected = oracle::valueOf(type(), bits);
    const float actual = toFloat(type(), bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(static_cast<float>(expected))) << bits;
    }
  }
}

TEST_P(Convert, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < patterns(); ++bits) {
    const uint32_t back = fromFloat(type(), toFloat(type(), bits));
    if (oracle::isNan(type(), bits)) {
      ASSERT_EQ(back, patterns() / 2 - 1) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

TEST_P(Convert, RoundsToNearestEvenBetweenAnyTwoNeighbours) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (uint32_t bits = 0; bits + 1 < patterns() / 2; ++bits) {
    const float low = toFloat(type(), bits), high = toFloat(type(), bits + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    for (float value : {low, middle, std::nextafter(middle, infinity), std::nextafter(middle, 0.0f),
                        std::nextafter(low, infinity), std::nextafter(high, 0.0f)})
      expectNearest(value);
  }
}

TEST_P(Convert, RoundsArbitraryFloats) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) expectNearest(std::bit_cast<float>(static_cast<uint32_t>(random())));
}

TEST_P(Convert, RoundsEveryExponentAndItsEnds) {
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (uint32_t mantissa : {0u, 1u, 0x3fffffu, 0x400000u, 0x400001u, 0x7ffffeu, 0x7fffffu})
      expectNearest(std::bit_cast<float>(exponent << 23 | mantissa));
}

INSTANTIATE_TEST_SUITE_P(Types, Convert, testing::ValuesIn(narrowFloats()),
                         [](const auto& test) { return std::string(nameOf(test.param)); });

TEST(ConvertLimits, E4m3SaturatesAndTheOthersOverflow) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(fromFloat(DataType::kFloat8e4m3, 464.0f), 0x7eu);
  EXPECT_EQ(fromFloat(DataType::kFloat8e4m3, 1e30f), 0x7eu);
  EXPECT_EQ(fromFloat(DataType::kFloat8e4m3, infinity), 0x7eu);
  EXPECT_EQ(fromFloat(DataType::kFloat8e4m3, -infinity), 0xfeu);
  EXPECT_EQ(toFloat(DataType::kFloat8e4m3, 0x7e), 448.0f);
  EXPECT_EQ(fromFloat(DataType::kFloat8e5m2, 61439.0f), 0x7bu);
  EXPECT_EQ(fromFloat(DataType::kFloat8e5m2, 61440.0f), 0x7cu);
  EXPECT_EQ(fromFloat(DataType::kFloat8e5m2, -infinity), 0xfcu);
  EXPECT_EQ(fromFloat(DataType::kFloat16, 65519.0f), 0x7bffu);
  EXPECT_EQ(fromFloat(DataType::kFloat16, 65520.0f), 0x7c00u);
  EXPECT_EQ(fromFloat(DataType::kBfloat16, std::numeric_limits<float>::max()), 0x7f80u);
}

TEST(ConvertLimits, SignsOfZeroAndOfWhatRoundsToItStay) {
  for (DataType type : {DataType::kFloat16, DataType::kFloat8e4m3, DataType::kFloat8e5m2}) {
    const uint32_t sign = 1u << (8 * sizeOf(type) - 1);
    EXPECT_EQ(fromFloat(type, -0.0f), sign);
    EXPECT_EQ(fromFloat(type, -1e-30f), sign);
    EXPECT_EQ(fromFloat(type, 1e-30f), 0u);
  }
}

}  // namespace
}  // namespace tutti::kernels
