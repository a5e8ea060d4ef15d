// combine(), bit for bit, for every type, operator and number of sources, on every instruction set of this machine.
#include "kernels/host/combine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "hwy/targets.h"
#include "kernels/host/vectors.h"
#include "support/sanitized.h"
#include "unit/number_oracle.h"

namespace tutti::kernels {
namespace {

using Array = std::vector<uint64_t>;  // one element's bits each

constexpr size_t kMargin = 128;  // room for canaries on either side, and for any misalignment
constexpr size_t kMostSources = 33;
constexpr int kNowhere = -1;  // a destination that is none of the sources

// Elements at an address that may be aligned to nothing, between canaries.
class Buffer {
 public:
  Buffer(size_t bytes, size_t shift) : bytes_(bytes), memory_(new std::byte[bytes + 2 * kMargin + 64]) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.get()) + kMargin;
    begin_ = memory_.get() + kMargin + (64 - address % 64) % 64 + shift % 64;
    std::memset(begin_ - 64, 0xa5, 64);
    std::memset(begin_, 0xcc, bytes);
    std::memset(begin_ + bytes, 0x5a, 64);
  }
  std::byte* data() const { return begin_; }
  bool canariesAlive() const {
    return std::all_of(begin_ - 64, begin_, [](std::byte b) { return b == std::byte{0xa5}; }) &&
           std::all_of(begin_ + bytes_, begin_ + bytes_ + 64, [](std::byte b) { return b == std::byte{0x5a}; });
  }

 private:
  size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
  std::byte* begin_;
};

void writeTo(std::byte* to, DataType type, const Array& values, size_t count) {
  for (size_t i = 0; i < count; ++i) std::memcpy(to + i * sizeOf(type), &values[i], sizeOf(type));
}

std::string difference(const std::byte* actual, DataType type, const Array& expected, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, actual + i * sizeOf(type), sizeOf(type));
    if (bits == expected[i]) continue;
    char text[120];
    std::snprintf(text, sizeof text, "element %zu is %llx, not %llx", i, static_cast<unsigned long long>(bits),
                  static_cast<unsigned long long>(expected[i]));
    return text;
  }
  return {};
}

// Bits of every kind in turn: anything at all, the ends and oddities of the format, and small whole numbers.
class Values {
 public:
  explicit Values(DataType type, uint32_t seed) : type_(type), random_(seed) {}

  uint64_t next(size_t index) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * sizeOf(type_));
    if (index % 3 == 0) return random_() & mask;
    if (index % 3 == 1) return odd() & mask;
    return small() & mask;
  }
  Array array(size_t count) {
    Array values(count);
    for (size_t i = 0; i < count; ++i) values[i] = next(i);
    return values;
  }

 private:
  uint64_t odd() {
    const uint64_t sign = uint64_t{1} << (8 * sizeOf(type_) - 1);
    const uint64_t one = oracle::isFloating(type_) ? uint64_t{1} << rowOf(type_).mantissaBits : 2;
    const uint64_t top = (sign - 1) / one * one;  // infinity, where there is one
    const uint64_t list[] = {
        0, 1, one - 1, one, top - 1, top, top + 1, sign - 1, top | one / 2, top / 2, top / 2 / one * one, 2};
    return list[random_() % std::size(list)] | (random_() % 2 ? sign : 0);
  }
  uint64_t small() {
    const int number = static_cast<int>(random_() % 17) - 8;
    if (type_ == DataType::kFloat64) return std::bit_cast<uint64_t>(static_cast<double>(number));
    if (type_ == DataType::kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(number));
    if (oracle::isFloating(type_)) return oracle::nearest(type_, static_cast<float>(number));
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  }

  DataType type_;
  std::mt19937_64 random_;
};

// The sources of a run, and what should come out: computed once, compared at many lengths and addresses.
struct Problem {
  Arithmetic arithmetic;
  int scaledSource;
  std::vector<Array> sources;
  Array expected;
};

Problem makeProblem(DataType type, ReduceOp op, int sourceCount, size_t count) {
  static constexpr uint32_t kDivisors[] = {3, 2, 7, 1, 300, 16777217, 5, 4294967295};
  Values values(type, static_cast<uint32_t>(sourceCount * 100 + static_cast<int>(op)));
  Problem problem;
  problem.arithmetic = {type, op, 1, 0};
  if (op == ReduceOp::kAvg) problem.arithmetic.divisor = kDivisors[sourceCount % 8];
  if (op == ReduceOp::kPreMulSum) problem.arithmetic.factor = values.next(2);
  problem.scaledSource = op == ReduceOp::kPreMulSum ? sourceCount % (sourceCount + 1) - 1 : -1;
  if (op == ReduceOp::kPreMulSum && sourceCount % 2) problem.scaledSource = 0;
  for (int s = 0; s < sourceCount; ++s) problem.sources.push_back(values.array(count));
  const oracle::Operation operation{type, op, problem.arithmetic.divisor, problem.arithmetic.factor,
                                    problem.scaledSource};
  Array column(static_cast<size_t>(sourceCount));
  for (size_t i = 0; i < count; ++i) {
    for (size_t s = 0; s < column.size(); ++s) column[s] = problem.sources[s][i];
    problem.expected.push_back(oracle::combined(operation, column));
  }
  return problem;
}

// Runs the first `count` elements. `targets` lists the destinations: the index of a source, or kNowhere.
// `around`: those that are no source are written around the caches.
std::string run(const Problem& problem, const std::vector<int>& targets, size_t count, size_t shift, bool around) {
  const DataType type = problem.arithmetic.type;
  std::vector<Buffer> buffers;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> destinations;
  buffers.reserve(problem.sources.size() + targets.size());
  for (const Array& values : problem.sources) {
    buffers.emplace_back(count * sizeOf(type), shift * (buffers.size() * 5 + 1));
    writeTo(buffers.back().data(), type, values, count);
    sources.push_back(buffers.back().data());
  }
  for (int target : targets) {
    if (target == kNowhere) buffers.emplace_back(count * sizeOf(type), shift * (buffers.size() * 3 + 7));
    destinations.push_back(target == kNowhere ? buffers.back().data() : buffers[static_cast<size_t>(target)].data());
  }
  const auto which = std::make_unique<bool[]>(targets.size());
  std::ranges::transform(targets, which.get(), [](int target) { return target == kNowhere; });
  combine(problem.arithmetic, destinations.data(), static_cast<int>(destinations.size()), sources.data(),
          static_cast<int>(sources.size()), count, problem.scaledSource, around ? which.get() : nullptr);
  for (const std::byte* destination : destinations) {
    if (std::string text = difference(destination, type, problem.expected, count); !text.empty()) return text;
  }
  for (size_t s = 0; s < problem.sources.size(); ++s) {
    if (std::count(targets.begin(), targets.end(), static_cast<int>(s))) continue;
    if (!difference(sources[s], type, problem.sources[s], count).empty()) return "a source has changed";
  }
  for (const Buffer& buffer : buffers)
    if (!buffer.canariesAlive()) return "a canary is dead";
  return {};
}

// Where results may go, for k sources: elsewhere, over each of the sources, and to several places at once.
std::vector<std::vector<int>> placements(int sourceCount) {
  std::vector<std::vector<int>> all = {{kNowhere}, {kNowhere, kNowhere, kNowhere}};
  for (int s = 0; s < sourceCount; ++s) all.push_back({s});
  all.push_back({kNowhere, sourceCount - 1});
  all.push_back({sourceCount - 1, kNowhere, 0});
  if (sourceCount == 1) all.back().pop_back();
  return all;
}

// Those that this machine has; under a sanitizer the narrowest and the widest, since all are one source.
std::vector<Vectors> vectorsHere() {
  std::vector<Vectors> here;
  for (const Vectors& one : everyVectors())
    if (one.runHere()) here.push_back(one);
  if (kSanitized && here.size() > 2) here.erase(here.begin() + 1, here.end() - 1);
  return here;
}

std::string nameOf(const Vectors& vectors) { return hwy::TargetName(vectors.highway); }

// Highway's library asks for more than the code has that it compiles, LZCNT say, which a processor may hide. That what
// we run does run, the tests of Combine show.
TEST(Vectors, RunWhereHighwaySaysSo) {
  for (const Vectors& one : everyVectors())
    EXPECT_TRUE(one.runHere() || (hwy::SupportedTargets() & one.highway) == 0) << nameOf(one);
}

class Combine : public testing::TestWithParam<std::tuple<int, Vectors>> {
 protected:
  void SetUp() override { useVectors(&std::get<1>(GetParam())); }
  void TearDown() override { useVectors(nullptr); }
  DataType type() const { return static_cast<DataType>(std::get<0>(GetParam())); }
  // Those that the type has.
  std::vector<ReduceOp> operators() const {
    const auto all = firstMembers<ReduceOp, kReduceOps>();
    std::vector<ReduceOp> defined;
    std::ranges::copy_if(all, std::back_inserter(defined), [this](ReduceOp op) { return isDefined(op, type()); });
    return defined;
  }

  void check(const Problem& problem, const std::vector<int>& targets, size_t count, size_t shift,
             bool around = false) const {
    const std::string text = run(problem, targets, count, shift, around);
    ASSERT_TRUE(text.empty()) << text << ": " << nameOf(type()) << ' ' << nameOf(problem.arithmetic.op) << ", "
                              << problem.sources.size() << " sources, " << targets.size() << " destinations (first "
                              << targets[0] << "), " << count << " elements, shift " << shift
                              << (around ? ", around the caches" : "");
  }
};

constexpr int kSourceCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, static_cast<int>(kMostSources)};

TEST_P(Combine, EveryOperatorSourceCountAndShortLength) {
  for (const ReduceOp op : operators()) {
    for (int sourceCount : kSourceCounts) {
      const Problem problem = makeProblem(type(), op, sourceCount, 71);
      const auto places = placements(sourceCount);
      for (size_t count = 0; count <= 70; ++count)
        ASSERT_NO_FATAL_FAILURE(check(problem, places[count % places.size()], count, count + 1));
    }
  }
}

TEST_P(Combine, EveryPlacementAtLengthsOfSeveralVectors) {
  for (const ReduceOp op : operators()) {
    for (int sourceCount : {1, 2, 3, 8}) {
      const Problem problem = makeProblem(type(), op, sourceCount, 700);
      for (const auto& places : placements(sourceCount))
        for (size_t count : {7, 64, 255, 256, 257, 571, 700})
          for (const bool around : {false, true})
            ASSERT_NO_FATAL_FAILURE(check(problem, places, count, count % 2 ? 1 : 0, around));
    }
  }
}

TEST_P(Combine, LongArrays) {
  for (const ReduceOp op : operators()) {
    for (int sourceCount : {1, 2, 5}) {
      const Problem problem = makeProblem(type(), op, sourceCount, 9001);
      for (const std::vector<int>& places : {std::vector<int>{kNowhere}, std::vector<int>{0, kNowhere, kNowhere}})
        for (size_t count : {4096, 9001})
          for (const bool around : {false, true})
            ASSERT_NO_FATAL_FAILURE(check(problem, places, count, count % 2 * 13, around));
    }
  }
}

// Every pair of patterns of a type of 8 bits; of the wider types every pattern against a few others.
TEST_P(Combine, EveryPatternOfTheNarrowTypes) {
  if (sizeOf(type()) > 2 || kSanitized) return;  // of values alone
  const size_t patterns = size_t{1} << (8 * sizeOf(type()));
  for (const ReduceOp op : operators()) {
    Problem problem = makeProblem(type(), op, 2, 0);
    const size_t others = sizeOf(type()) == 1 ? patterns : 1;
    Values values(type(), 3);
    for (auto& source : problem.sources) source.reserve(patterns * others);
    for (size_t i = 0; i < patterns * others; ++i) {
      problem.sources[0].push_back(i % patterns);
      problem.sources[1].push_back(sizeOf(type()) == 1 ? i / patterns : values.next(i));
      const oracle::Operation operation{type(), problem.arithmetic.op, problem.arithmetic.divisor,
                                        problem.arithmetic.factor, problem.scaledSource};
      problem.expected.push_back(oracle::combined(operation, {problem.sources[0][i], problem.sources[1][i]}));
    }
    ASSERT_NO_FATAL_FAILURE(check(problem, {kNowhere}, patterns * others, 0));
  }
}

// Where a quotient is a whole number, or lacks least to one, at both ends of the type and in between.
TEST_P(Combine, AveragesOfWholeNumbersAreCutOff) {
  if (oracle::isFloating(type()) || type() == DataType::kBool) return;
  const uint64_t mask = ~uint64_t{0} >> (64 - 8 * sizeOf(type()));
  std::mt19937_64 random(11);
  for (uint32_t divisor : {2u, 3u, 5u, 7u, 8u, 10u, 127u, 128u, 255u, 257u, 32767u, 65535u, 65537u, 1u << 31, ~0u}) {
    Problem problem{{type(), ReduceOp::kAvg, divisor, 0}, -1, {{}}, {}};
    Array& values = problem.sources[0];
    for (const uint64_t end : {uint64_t{0}, mask / 2, mask / 2 + 1, mask}) {
      const uint64_t multiple = end / divisor * divisor;
      for (uint64_t around : {end, multiple}) values.insert(values.end(), {around, around + 1, around - 1});
    }
    for (int i = 0; i < 1000; ++i) {
      const uint64_t multiple = ((random() & mask) >> (i % (8 * sizeOf(type())))) / divisor * divisor;
      for (const uint64_t value : {multiple, multiple - 1, 0 - multiple, 1 - multiple}) values.push_back(value);
    }
    for (uint64_t& value : values) {
      value &= mask;
      problem.expected.push_back(oracle::combined({type(), ReduceOp::kAvg, divisor, 0, -1}, {value}));
    }
    ASSERT_NO_FATAL_FAILURE(check(problem, {kNowhere}, values.size(), 0)) << divisor;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Combine,
                         testing::Combine(testing::Range(0, kDataTypes), testing::ValuesIn(vectorsHere())),
                         [](const auto& test) {
                           return std::string(nameOf(static_cast<DataType>(std::get<0>(test.param)))) + "_" +
                                  nameOf(std::get<1>(test.param));
                         });

float combineFloats(ReduceOp op, float first, float second) {
  float result = 0;
  const std::byte* sources[] = {reinterpret_cast<std::byte*>(&first), reinterpret_cast<std::byte*>(&second)};
  auto* destination = reinterpret_cast<std::byte*>(&result);
  combine({DataType::kFloat32, op, 1, 0}, &destination, 1, sources, 2, 1);
  return result;
}

TEST(CombineRules, NanWinsOverAnyNumberOnEitherSide) {
  const float nan = std::bit_cast<float>(0xff800001u);
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(combineFloats(op, nan, 1)), 0x7fffffffu) << nameOf(op);
    EXPECT_EQ(std::bit_cast<uint32_t>(combineFloats(op, 1, nan)), 0x7fffffffu) << nameOf(op);
  }
}

// What small calls of two ranks are added by is what all others are: bit for bit, whatever the bits.
TEST(CombineRules, ATinyPairIsAddedAsInCombine) {
  std::mt19937_64 random(7);
  int types = 0;
  for (int row = 0; row < kDataTypes; ++row) {
    const Arithmetic sum{.type = static_cast<DataType>(row)};
    TinyPairSum* const sums = tinyPairSumOf(sum, 1);
    EXPECT_EQ(sums != nullptr, tinySumOf(sum, 1) != nullptr);
    EXPECT_EQ(tinyPairSumOf({.type = sum.type, .op = ReduceOp::kMax}, 1), nullptr);
    EXPECT_EQ(tinyPairSumOf(sum, 1000), nullptr);
    if (sums == nullptr) continue;
    ++types;
    for (int turn = 0; turn < 200; ++turn) {
      std::array<uint64_t, 4> a, b, expected{}, found{};
      for (uint64_t& word : a) word = turn % 4 == 0 ? ~uint64_t{0} >> (turn % 13) : random();  // NaN among them
      for (uint64_t& word : b) word = random();
      const size_t count = 1 + static_cast<size_t>(turn) % (sizeof a / sizeOf(sum.type));
      const std::byte* sources[] = {reinterpret_cast<std::byte*>(a.data()), reinterpret_cast<std::byte*>(b.data())};
      std::byte* to = reinterpret_cast<std::byte*>(expected.data());
      combine(sum, &to, 1, sources, 2, count);
      sums(reinterpret_cast<std::byte*>(found.data()), sources[0], sources[1], count);
      EXPECT_EQ(found, expected) << row << " " << count;
    }
  }
  EXPECT_EQ(types, 6);
}

TEST(CombineRules, OfZerosTheEarlierOneStays) {
  for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
    EXPECT_TRUE(std::signbit(combineFloats(op, -0.0f, 0.0f)));
    EXPECT_FALSE(std::signbit(combineFloats(op, 0.0f, -0.0f)));
  }
}

TEST(CombineRules, ProductsOfHalvesAreRoundedBeforeTheyAreAdded) {
  // 1.5 * (1 + 2^-10) needs a bit more than a half has; added to 2^-11 it would not.
  const uint16_t scaled = 0x3c01, added = 0x1000;
  uint16_t result = 0;
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(&scaled),
                                reinterpret_cast<const std::byte*>(&added)};
  auto* destination = reinterpret_cast<std::byte*>(&result);
  combine({DataType::kFloat16, ReduceOp::kPreMulSum, 1, 0x3e00}, &destination, 1, sources, 2, 1, 0);
  EXPECT_EQ(toFloat(DataType::kFloat16, result), 1.5f + 0x1p-9f);
}

// What proof::verify builds on: a rank that adds its product at once makes the bits that another rank makes of the
// product as it was sent, whichever kernel the length asks for.
TEST(CombineRules, AProductIsTheSameSentOrAddedAtOnce) {
  std::mt19937_64 random(7);
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    if (!isDefined(ReduceOp::kPreMulSum, type)) continue;
    for (const size_t count : {1, 3, 17, 1500}) {
      std::vector<uint64_t> mine(count), theirs(count), sent(count), at(count), later(count);
      for (size_t i = 0; i < count; ++i) mine[i] = random(), theirs[i] = random();
      const auto bytes = [](std::vector<uint64_t>& numbers) { return reinterpret_cast<std::byte*>(numbers.data()); };
      const Arithmetic product{type, ReduceOp::kPreMulSum, 1, 0x3ff33ff33e53b93b};
      std::byte *toSent = bytes(sent), *toAt = bytes(at), *toLater = bytes(later);
      const std::byte* const own[] = {bytes(theirs), bytes(mine)};
      const std::byte* const received[] = {bytes(theirs), bytes(sent)};
      combine(product, &toSent, 1, own + 1, 1, count, 0);
      combine(product, &toAt, 1, own, 2, count, 1);
      combine(product, &toLater, 1, received, 2, count);
      EXPECT_EQ(at, later) << nameOf(type) << ", " << count << " elements";
    }
  }
}

// What a communicator of one rank makes of a reduction of bool, at every length that has a kernel of its own.
TEST(CombineRules, TimesTrueAnyByteButZeroIsOne) {
  for (const size_t count : {1, 17, 40, 5000}) {
    std::vector<uint8_t> bytes(count), result(count, 9);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37);
    const auto* source = reinterpret_cast<const std::byte*>(bytes.data());
    auto* destination = reinterpret_cast<std::byte*>(result.data());
    combine({DataType::kBool, ReduceOp::kPreMulSum, 1, 1}, &destination, 1, &source, 1, count, 0);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(result[i], bytes[i] != 0) << i << " of " << count;
  }
}

// Partial results of bool are 0 or 1: which ranks are combined first makes no difference, though a byte's bits would.
TEST(CombineRules, TruthsAreTheSameInAnyOrder) {
  const uint8_t bytes[] = {2, 4, 0};
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kBitAnd,
                            ReduceOp::kBitOr, ReduceOp::kBitXor}) {
    const auto both = [op](uint8_t a, uint8_t b) {
      uint8_t result = 9;
      const std::byte* sources[] = {reinterpret_cast<std::byte*>(&a), reinterpret_cast<std::byte*>(&b)};
      auto* destination = reinterpret_cast<std::byte*>(&result);
      combine({DataType::kBool, op, 1, 0}, &destination, 1, sources, 2, 1);
      return result;
    };
    for (const uint8_t a : bytes)
      for (const uint8_t b : bytes)
        for (const uint8_t c : bytes)
          EXPECT_EQ(both(both(a, b), c), both(a, both(b, c))) << nameOf(op) << int{a} << int{b} << int{c};
  }
}

TEST(CombineRules, IntegerAverageDividesTowardsZero) {
  const int32_t first[] = {-7, 7, std::numeric_limits<int32_t>::max()}, second[] = {0, 0, 1};
  int32_t result[3] = {};
  const std::byte* sources[] = {reinterpret_cast<const std::byte*>(first), reinterpret_cast<const std::byte*>(second)};
  auto* destination = reinterpret_cast<std::byte*>(result);
  combine({DataType::kInt32, ReduceOp::kAvg, 2, 0}, &destination, 1, sources, 2, 3);
  EXPECT_EQ(result[0], -3);
  EXPECT_EQ(result[1], 3);
  EXPECT_EQ(result[2], std::numeric_limits<int32_t>::min() / 2);
}

}  // namespace
}  // namespace tutti::kernels
