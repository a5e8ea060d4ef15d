// What bench/compare puts into vectors, and whether it sees what came out wrong.
#include "compare/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace tutti::compare {
namespace {

constexpr int kRanks = 4;

float floatAt(const std::vector<std::byte>& vector, size_t element) {
  float value;
  std::memcpy(&value, vector.data() + element * sizeof value, sizeof value);
  return value;
}

// What rank `rank` must have after the operation.
std::vector<std::byte> resultOf(const Cell& cell, int rank) {
  std::vector<std::byte> result((cell.whole(kRanks) + 1) * sizeOf(cell.type));
  const size_t count = cell.operation == Operation::kReduceScatter ? cell.part(kRanks) : cell.whole(kRanks);
  for (size_t i = 0; i < count; ++i) put(cell.type, result.data(), i, expected(cell, i, rank, kRanks));
  return result;
}

TEST(CompareValues, FillsAsEachElementSays) {
  for (const size_t count : {1u, 12u, 13u, 14u, 100u, 1000u}) {
    std::vector<std::byte> vector(count * sizeof(float));
    fill(Type::kFloat, vector.data(), 5, count, 3);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(floatAt(vector, i), static_cast<float>(valueOf(5 + i, 3))) << i;
  }
}

TEST(CompareValues, SumsAddUpWhatTheRanksFill) {
  const Cell cell{Operation::kAllReduce, Type::kFloat, 400, false};
  std::vector<float> sums(100);
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::byte> vector(400);
    fill(Type::kFloat, vector.data(), 0, 100, rank);
    for (size_t i = 0; i < 100; ++i) sums[i] += floatAt(vector, i);
  }
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(sums[i], static_cast<float>(expected(cell, i, 0, kRanks))) << i;
}

TEST(CompareValues, NumbersOf16Bits) {
  EXPECT_EQ(halfOf(1), 0x3c00);
  EXPECT_EQ(halfOf(2), 0x4000);
  EXPECT_EQ(halfOf(3), 0x4200);
  EXPECT_EQ(halfOf(208), 0x5a80);  // the largest sum of 16 ranks
  EXPECT_EQ(bfloat16Of(1), 0x3f80);
  EXPECT_EQ(bfloat16Of(208), 0x4350);
}

TEST(CompareValues, EverySumOf16RanksFits) {
  for (int value = 1; value <= 208; ++value) {
    const uint32_t wide = static_cast<uint32_t>(bfloat16Of(static_cast<float>(value))) << 16;
    EXPECT_EQ(std::bit_cast<float>(wide), static_cast<float>(value));
  }
}

TEST(CompareValues, SeesAWrongElementAndNamesTheFirst) {
  for (const Operation operation :
       {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter, Operation::kBroadcast}) {
    for (const Type type : {Type::kFloat, Type::kDouble, Type::kInt32, Type::kHalf, Type::kBfloat16}) {
      const Cell cell{operation, type, 4096, false};
      for (int rank = 0; rank < kRanks; ++rank) {
        std::vector<std::byte> result = resultOf(cell, rank);
        ASSERT_EQ(firstWrong(cell, result.data(), rank, kRanks), -1) << nameOf(operation) << " " << nameOf(type);
        result[17 * sizeOf(type)] ^= std::byte{1};
        EXPECT_EQ(firstWrong(cell, result.data(), rank, kRanks), 17) << nameOf(operation) << " " << nameOf(type);
      }
    }
  }
}

TEST(CompareValues, SeesPartsThatChangedPlaces) {
  const Cell cell{Operation::kAllGather, Type::kFloat, 4096, false};
  std::vector<std::byte> result = resultOf(cell, 0);
  std::swap_ranges(result.begin(), result.begin() + 1024, result.begin() + 1024);
  EXPECT_EQ(firstWrong(cell, result.data(), 0, kRanks), 0);
}

TEST(CompareValues, LooksAtTheEndOfWhatIsTooLongToLookAtWhole) {
  const Cell cell{Operation::kAllReduce, Type::kFloat, 4 << 20, false};
  std::vector<std::byte> result = resultOf(cell, 0);
  const size_t last = cell.whole(kRanks) - 1;
  ASSERT_EQ(firstWrong(cell, result.data(), 0, kRanks), -1);
  result[last * sizeof(float)] ^= std::byte{1};
  EXPECT_EQ(firstWrong(cell, result.data(), 0, kRanks), static_cast<long>(last));
}

TEST(CompareValues, EveryRankHasAPartOfTheSmallest) {
  const Cell cell{Operation::kAllGather, Type::kFloat, 8, false};
  EXPECT_EQ(cell.part(kRanks), 1u);
  EXPECT_EQ(cell.whole(kRanks), 4u);
  EXPECT_EQ((Cell{Operation::kBroadcast, Type::kFloat, 8, false}).whole(kRanks), 2u);
}

TEST(CompareValues, CellsAreLinesOfAFile) {
  const std::string path = ::testing::TempDir() + "compare_cells";
  std::ofstream(path) << "all_reduce float 1024 in 0.5\nbroadcast half 8 out 0\n";
  const std::vector<Cell> cells = readCells(path);
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].operation, Operation::kAllReduce);
  EXPECT_TRUE(cells[0].inPlace);
  EXPECT_EQ(cells[0].slow, 0.5);
  EXPECT_EQ(cells[1].type, Type::kHalf);
  EXPECT_FALSE(cells[1].inPlace);
  for (const char* wrong : {"", "sum float 8 in 0\n", "all_reduce float 8\n", "all_reduce float 8 beside 0\n",
                            "all_reduce pair 8 in 0\n"}) {
    std::ofstream(path) << wrong;
    EXPECT_THROW(readCells(path), std::runtime_error) << wrong;
  }
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tutti::compare
