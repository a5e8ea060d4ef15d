// The programs' inputs give the same bits in every order; their checks notice what is wrong.
#include "perf/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/host/combine.h"
#include "perf/check.h"

namespace tutti::perf {
namespace {

// One operation as a machine does it that rounds to the type every time.
double combined(tuttiDataType_t type, Operator op, double a, double b) {
  switch (op) {
    case Operator::kProd:
      return decode(type, encode(type, a * b));
    case Operator::kMax:
      return std::max(a, b);
    case Operator::kMin:
      return std::min(a, b);
    default:
      return decode(type, encode(type, a + b));
  }
}

// Combines random pairs until one value is left: any order and any tree.
double inRandomOrder(tuttiDataType_t type, Operator op, std::vector<double> values, std::mt19937& random) {
  while (values.size() > 1) {
    std::swap(values[random() % values.size()], values.back());
    const double last = values.back();
    values.pop_back();
    double& other = values[random() % values.size()];
    other = combined(type, op, other, last);
  }
  return values.front();
}

std::vector<double> termsOf(tuttiDataType_t type, Operator op, int ranks, size_t index) {
  std::vector<double> terms;
  for (int rank = 0; rank < ranks; ++rank) {
    double term = decode(type, contribution(type, op, ranks, rank, index));
    if (op == Operator::kMulSum) term *= decode(type, factorOf(type, rank));
    terms.push_back(term);
  }
  return terms;
}

void expectAnyOrder(tuttiDataType_t type, Operator op, int ranks, std::mt19937& random) {
  for (size_t index = 0; index < 20; ++index) {
    const std::vector<double> terms = termsOf(type, op, ranks, index);
    for (int order = 0; order < 4; ++order) {
      double result = inRandomOrder(type, op, terms, random);
      if (op == Operator::kAvg) result /= ranks;
      ASSERT_EQ(encode(type, result), expectation(type, op, ranks, index))
          << nameOf(type) << ' ' << nameOf(op) << " of " << ranks << " ranks, entry " << index;
    }
  }
}

TEST(PerfInputs, FloatsReduceToTheSameBitsInAnyOrder) {
  std::mt19937 random(1);
  for (const tuttiDataType_t type : allTypes()) {
    if (!isFloat(type)) continue;
    for (const Operator op : allOperators()) {
      for (int ranks = 1; ranks <= 64 && isDefined(op, type); ++ranks) expectAnyOrder(type, op, ranks, random);
    }
  }
}

ReduceOp libraryOperator(Operator op) {
  switch (op) {
    case Operator::kProd:
      return ReduceOp::kProd;
    case Operator::kMax:
      return ReduceOp::kMax;
    case Operator::kMin:
      return ReduceOp::kMin;
    case Operator::kAvg:
      return ReduceOp::kAvg;
    case Operator::kBitAnd:
      return ReduceOp::kBitAnd;
    case Operator::kBitOr:
      return ReduceOp::kBitOr;
    case Operator::kBitXor:
      return ReduceOp::kBitXor;
    default:
      return ReduceOp::kSum;
  }
}

DataType rowFor(tuttiDataType_t type) { return static_cast<DataType>(rowOfNumber(type)); }

// The library's own kernel must turn the ranks' inputs into the expected results: integers included.
void expectLibraryAgrees(tuttiDataType_t type, Operator op, int ranks) {
  constexpr size_t kCount = 100;
  const size_t size = sizeOf(type);
  std::vector<std::vector<std::byte>> sent(static_cast<size_t>(ranks), std::vector<std::byte>(kCount * size));
  std::vector<std::byte> result(kCount * size), expected(kCount * size);
  std::vector<const std::byte*> sources;
  const auto store = [size](uint64_t bits, std::byte* to) { std::memcpy(to, &bits, size); };
  for (int rank = 0; rank < ranks; ++rank) {
    std::byte* mine = sent[static_cast<size_t>(rank)].data();
    for (size_t i = 0; i < kCount; ++i) store(contribution(type, op, ranks, rank, i), mine + i * size);
    sources.push_back(mine);
  }
  for (size_t i = 0; i < kCount; ++i) store(expectation(type, op, ranks, i), expected.data() + i * size);
  std::byte* destination = result.data();
  const kernels::Arithmetic arithmetic{rowFor(type), libraryOperator(op),
                                       op == Operator::kAvg ? static_cast<uint32_t>(ranks) : 1u, 0};
  kernels::combine(arithmetic, &destination, 1, sources.data(), ranks, kCount);
  EXPECT_EQ(result, expected) << nameOf(type) << ' ' << nameOf(op) << " of " << ranks;
}

TEST(PerfInputs, AgreesWithTheLibrarysArithmetic) {
  for (const tuttiDataType_t type : allTypes()) {
    for (const Operator op : allOperators()) {
      if (op == Operator::kMulSum || !isDefined(op, type)) continue;
      for (const int ranks : {2, 3, 7, 16, 64, 100}) expectLibraryAgrees(type, op, ranks);
      if (type != tuttiBool) expectLibraryAgrees(type, op, 1);  // of one the kernel alone makes a copy
    }
  }
}

// Or a program could not tell "and" from what leaves nothing, nor "or" from what sets everything.
TEST(PerfInputs, BitsAndTruthsComeOutBothWays) {
  for (const tuttiDataType_t type : {tuttiUint8, tuttiInt64, tuttiBool})
    for (const Operator op : {Operator::kBitAnd, Operator::kBitOr, Operator::kBitXor})
      for (const int ranks : {1, 2, 3, 8, 64, 1000}) {
        int set = 0;
        for (size_t index = 0; index < 500; ++index) set += static_cast<int>(expectation(type, op, ranks, index) & 1);
        EXPECT_GT(set, 25) << nameOf(type) << ' ' << nameOf(op) << " of " << ranks;
        EXPECT_LT(set, 475) << nameOf(type) << ' ' << nameOf(op) << " of " << ranks;
      }
}

TEST(PerfTypes, AllLeavesOutWhatTheLibraryRefuses) {
  EXPECT_TRUE(isDefined(Operator::kBitXor, tuttiInt64) && isDefined(Operator::kAvg, tuttiUint16));
  EXPECT_TRUE(isDefined(Operator::kSum, tuttiBool) && isDefined(Operator::kBitAnd, tuttiBool));
  EXPECT_FALSE(isDefined(Operator::kAvg, tuttiBool) || isDefined(Operator::kMulSum, tuttiBool));
  EXPECT_FALSE(isDefined(Operator::kBitOr, tuttiFloat64) || isDefined(Operator::kBitAnd, tuttiFloat8e5m2));
}

TEST(PerfInputs, EveryRankMattersSomewhere) {
  for (const tuttiDataType_t type : {tuttiFloat8e5m2, tuttiFloat32}) {
    for (int rank = 0; rank < 64; ++rank) {
      size_t nonZero = 0;
      for (size_t index = 0; index < 500; ++index) {
        nonZero += contribution(type, Operator::kSum, 64, rank, index) != 0;
      }
      EXPECT_GT(nonZero, 10u) << "rank " << rank;
    }
  }
}

TEST(PerfInputs, SequencesAreSeamlessAndDifferByKey) {
  const Inputs inputs = Inputs::movement(tuttiInt32);
  std::vector<std::byte> whole(3 * kPeriod * 4), parts(whole.size());
  inputs.sent(1, 7).write(11, 3 * kPeriod, whole.data());
  for (size_t at = 0; at < 3 * kPeriod; at += 100) {
    inputs.sent(1, 7).write(11 + at, std::min<size_t>(100, 3 * kPeriod - at), parts.data() + at * 4);
  }
  EXPECT_EQ(whole, parts);
  // Neither the next period, nor another rank, nor another run looks the same.
  EXPECT_NE(0, std::memcmp(whole.data(), whole.data() + kPeriod * 4, 400));
  inputs.sent(2, 7).write(11, 100, parts.data());
  EXPECT_NE(0, std::memcmp(whole.data(), parts.data(), 400));
  inputs.sent(1, 8).write(11, 100, parts.data());
  EXPECT_NE(0, std::memcmp(whole.data(), parts.data(), 400));
}

TEST(PerfTypes, EncodesWhatItDecodes) {
  for (const tuttiDataType_t type : allTypes()) {
    if (!isFloat(type) || sizeOf(type) >= sizeof(float)) continue;
    const uint32_t codes = 1u << (8 * sizeOf(type));
    for (uint32_t bits = 0; bits < codes; ++bits) {
      const float value = kernels::toFloat(rowFor(type), bits);
      if (!std::isfinite(value)) continue;
      ASSERT_EQ(decode(type, bits), value) << nameOf(type) << ' ' << bits;
      ASSERT_EQ(encode(type, value), bits) << nameOf(type);
    }
  }
  EXPECT_EQ(encode(tuttiFloat32, 1.0 + 0x1p-24), 0x3f800000u);  // a tie goes to even
  EXPECT_EQ(encode(tuttiFloat32, 1.0 + 0x3p-24), 0x3f800002u);
  EXPECT_EQ(encode(tuttiFloat32, -0x1p-149), 0x80000001u);
}

TEST(PerfCheck, LaterLayersHideEarlierOnesAndTheRestIsPoison) {
  const Inputs inputs = Inputs::movement(tuttiInt32);
  const Sequence below = inputs.sent(0, 1), above = inputs.sent(1, 1);
  Image image{20000, 4, {{5, 19000, below, 0, true}, {8190, 10, above, 3}}};
  std::vector<std::byte> buffer(image.bytes());
  paint(image, buffer.data());
  EXPECT_EQ(countWrong(image, buffer.data()), 0u);
  std::vector<std::byte> expected(40);
  above.write(3, 10, expected.data());
  EXPECT_EQ(0, std::memcmp(expected.data(), buffer.data() + 8190 * 4, 40));
  EXPECT_EQ(buffer[0], buffer[19990 * 4]);
  // What is still as it was painted inverted is wrong, element for element.
  image.layers = {{5, 19000, below, 0}, {8190, 10, above, 3}};
  EXPECT_EQ(countWrong(image, buffer.data()), 18990u);
}

TEST(PerfCheck, CountsWrongElementsNotBytes) {
  const Inputs inputs = Inputs::movement(tuttiFloat64);
  const Image image{9000, 8, {{0, 9000, inputs.sent(0, 1), 0}}};
  std::vector<std::byte> buffer(image.bytes());
  paint(image, buffer.data());
  buffer[8 * 8999] ^= std::byte{1};
  buffer[8 * 8999 + 7] ^= std::byte{1};
  buffer[8 * 100 + 3] ^= std::byte{1};
  EXPECT_EQ(countWrong(image, buffer.data()), 2u);
}

}  // namespace
}  // namespace tutti::perf
