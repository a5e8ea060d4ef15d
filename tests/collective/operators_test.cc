// Every data type with every operator through the C API, with values whose results are exact in any order.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/host/combine.h"
#include "schedule/algorithm.h"
#include "support/api_ranks.h"

namespace {

using namespace tutti;
using namespace tutti::test;

template <class T>
uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// The bits of a small number in a type.
uint64_t encode(DataType type, double number) {
  switch (type) {
    case DataType::kInt8:
      return bitsOf(static_cast<int8_t>(number));
    case DataType::kUint8:
      return bitsOf(static_cast<uint8_t>(number));
    case DataType::kBool:
      return bitsOf(number != 0);
    case DataType::kInt16:
      return bitsOf(static_cast<int16_t>(number));
    case DataType::kUint16:
      return bitsOf(static_cast<uint16_t>(number));
    case DataType::kInt32:
      return bitsOf(static_cast<int32_t>(number));
    case DataType::kUint32:
      return bitsOf(static_cast<uint32_t>(number));
    case DataType::kInt64:
      return bitsOf(static_cast<int64_t>(number));
    case DataType::kUint64:
      return bitsOf(static_cast<uint64_t>(number));
    case DataType::kFloat32:
      return bitsOf(static_cast<float>(number));
    case DataType::kFloat64:
      return bitsOf(number);
    default:
      return kernels::fromFloat(type, static_cast<float>(number));
  }
}

// Of values that are 0 or 1 also the logical one.
double reducedBits(ReduceOp op, const std::vector<double>& values) {
  auto result = static_cast<uint64_t>(values[0]);
  for (size_t i = 1; i < values.size(); ++i) {
    const auto next = static_cast<uint64_t>(values[i]);
    result = op == ReduceOp::kBitAnd ? result & next : op == ReduceOp::kBitOr ? result | next : result ^ next;
  }
  return static_cast<double>(result);
}

double reduced(ReduceOp op, const std::vector<double>& values, bool integer, double factor) {
  if (isBitwise(op)) return reducedBits(op, values);
  double result = op == ReduceOp::kProd                                                        ? 1
                  : op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kPreMulSum ? 0
                                                                                               : values[0];
  for (const double v : values) {
    switch (op) {
      case ReduceOp::kProd:
        result *= v;
        break;
      case ReduceOp::kMax:
        result = std::max(result, v);
        break;
      case ReduceOp::kMin:
        result = std::min(result, v);
        break;
      case ReduceOp::kPreMulSum:
        result += v * factor;
        break;
      default:
        result += v;
    }
  }
  if (op == ReduceOp::kAvg) result /= static_cast<double>(values.size());
  return integer ? std::trunc(result) : result;
}

class OperatorTest : public ::testing::TestWithParam<int> {};

TEST_P(OperatorTest, EveryOperator) {
  const auto type = static_cast<DataType>(GetParam());
  const size_t width = sizeOf(type);
  constexpr int kRanks = 4;
  constexpr size_t kCount = 261;
  const bool integer = !rowOf(type).isFloat();
  const auto number = static_cast<tuttiDataType_t>(numberOf(type));
  withCommunicators(kRanks, testConfig(), [&](tuttiComm_t comm, int rank) {
    for (int o = 0; o < kReduceOps; ++o) {
      const auto op = static_cast<ReduceOp>(o);
      if (!isDefined(op, type)) continue;
      const auto valueOf = [&](int r, size_t i) {  // products stay small: 1 and 2 only
        if (type == DataType::kBool) return static_cast<double>((static_cast<size_t>(r) + i) % 5 < i % 4);
        return op == ReduceOp::kProd ? 1.0 + static_cast<double>((static_cast<size_t>(r) + i) % 2)
                                     : static_cast<double>((static_cast<size_t>(r) * 3 + i) % 4);
      };
      std::vector<std::byte> send(kCount * width), recv(kCount * width);
      for (size_t i = 0; i < kCount; ++i) {
        const uint64_t bits = encode(type, valueOf(rank, i));
        std::memcpy(send.data() + i * width, &bits, width);
      }
      auto redOp = static_cast<tuttiRedOp_t>(numberOf(op));
      uint64_t factor = encode(type, 2);
      if (op == ReduceOp::kPreMulSum)
        CHECK_TUTTI(tuttiRedOpCreatePreMulSum(&redOp, &factor, number, tuttiScalarHostImmediate, comm));
      CHECK_TUTTI(tuttiAllReduce(send.data(), recv.data(), kCount, number, redOp, comm, nullptr));
      if (op == ReduceOp::kPreMulSum) CHECK_TUTTI(tuttiRedOpDestroy(redOp, comm));
      for (size_t i = 0; i < kCount; ++i) {
        std::vector<double> values;
        for (int r = 0; r < kRanks; ++r) values.push_back(valueOf(r, i));
        const uint64_t want = encode(type, reduced(op, values, integer, 2));
        ASSERT_EQ(std::memcmp(recv.data() + i * width, &want, width), 0)
            << nameOf(type) << " " << nameOf(op) << " element " << i << " rank " << rank;
      }
    }
  });
}

std::string nameOfType(const ::testing::TestParamInfo<int>& type) {
  return std::string(nameOf(static_cast<DataType>(type.param)));
}

INSTANTIATE_TEST_SUITE_P(Types, OperatorTest, ::testing::Range(0, kDataTypes), nameOfType);

// ---- bool, and the types and operators that NCCL has not, by every algorithm and transport ----

struct Way {
  const char* transport;
  schedule::Algorithm algorithm;
  int ranks;
};

std::vector<Way> waysOf(Collective collective) {
  std::vector<Way> ways;
  for (const char* transport : {"p2p", "shm", "tcp"})
    for (const auto algorithm : schedule::algorithmsFor(collective))
      for (const int ranks : transport == std::string("p2p") ? std::vector<int>{1, 2, 5} : std::vector<int>{3})
        ways.push_back({transport, algorithm, ranks});
  return ways;
}

template <class Body>
void everyWay(Collective collective, Body body) {
  for (const Way& way : waysOf(collective)) {
    const std::string algorithm(nameOf(way.algorithm));
    SCOPED_TRACE(fmt::format("{} by {} over {}, {} ranks", nameOf(collective), algorithm, way.transport, way.ranks));
    tuttiConfig_t config = testConfig();
    config.transports = way.transport;
    config.algorithm = algorithm.c_str();
    withCommunicators(way.ranks, config, [&](tuttiComm_t comm, int rank) { body(comm, rank, way.ranks); });
  }
}

constexpr size_t kTruths = 700;

// On all ranks, on none, and on each set of four; and what is true has any bits.
uint8_t truthOf(int rank, size_t i) {
  const bool isTrue = i % 5 == 0 || (i % 16 >> (rank % 4) & 1) != 0;
  return isTrue ? static_cast<uint8_t>((i * 7 + static_cast<size_t>(rank) * 13) % 255 + 1) : 0;
}

uint8_t reducedTruth(tuttiRedOp_t op, int ranks, size_t i) {
  int truths = 0;
  for (int rank = 0; rank < ranks; ++rank) truths += truthOf(rank, i) != 0;
  if (op == tuttiBitXor) return truths % 2 == 1;
  return op == tuttiProd || op == tuttiMin || op == tuttiBitAnd ? truths == ranks : truths > 0;
}

TEST(BoolOperators, GiveZeroOrOneByEveryAlgorithmAlsoInPlaceAndAlone) {
  everyWay(Collective::kAllReduce, [](tuttiComm_t comm, int rank, int ranks) {
    for (const tuttiRedOp_t op : {tuttiSum, tuttiProd, tuttiMax, tuttiMin, tuttiBitAnd, tuttiBitOr, tuttiBitXor})
      for (const size_t count : {size_t{3}, kTruths})
        for (const bool inPlace : {false, true}) {
          std::vector<uint8_t> send(count), recv(count, 0xa5);
          for (size_t i = 0; i < count; ++i) send[i] = truthOf(rank, i);
          auto& result = inPlace ? send : recv;
          CHECK_TUTTI(tuttiAllReduce(send.data(), result.data(), count, tuttiBool, op, comm, nullptr));
          for (size_t i = 0; i < count; ++i)
            ASSERT_EQ(result[i], reducedTruth(op, ranks, i)) << "operator " << op << ", element " << i;
        }
  });
}

TEST(BoolOperators, OfReduceAndReduceScatterToo) {
  everyWay(Collective::kReduce, [](tuttiComm_t comm, int rank, int ranks) {
    std::vector<uint8_t> send(kTruths), recv(kTruths, 0xa5);
    for (size_t i = 0; i < kTruths; ++i) send[i] = truthOf(rank, i);
    CHECK_TUTTI(tuttiReduce(send.data(), recv.data(), kTruths, tuttiBool, tuttiBitXor, ranks - 1, comm, nullptr));
    for (size_t i = 0; i < kTruths && rank == ranks - 1; ++i) ASSERT_EQ(recv[i], reducedTruth(tuttiBitXor, ranks, i));
  });
  everyWay(Collective::kReduceScatter, [](tuttiComm_t comm, int rank, int ranks) {
    std::vector<uint8_t> send(kTruths * static_cast<size_t>(ranks)), recv(kTruths, 0xa5);
    for (size_t i = 0; i < send.size(); ++i) send[i] = truthOf(rank, i);
    CHECK_TUTTI(tuttiReduceScatter(send.data(), recv.data(), kTruths, tuttiBool, tuttiSum, comm, nullptr));
    const size_t first = static_cast<size_t>(rank) * kTruths;
    for (size_t i = 0; i < kTruths; ++i) ASSERT_EQ(recv[i], reducedTruth(tuttiSum, ranks, first + i));
  });
}

TEST(BoolOperators, WhatOnlyMovesKeepsItsBits) {
  for (const int ranks : {1, 3})
    withCommunicators(ranks, testConfig(), [&](tuttiComm_t comm, int rank) {
      uint8_t sent[] = {0, 1, 2, 0xff}, received[4] = {9, 9, 9, 9};
      CHECK_TUTTI(tuttiBroadcast(sent, received, 4, tuttiBool, ranks - 1, comm, nullptr));
      EXPECT_EQ(std::memcmp(sent, received, 4), 0) << "on rank " << rank;
    });
}

template <class T>
void expectBits(tuttiDataType_t type) {
  everyWay(Collective::kAllReduce, [type](tuttiComm_t comm, int rank, int ranks) {
    constexpr size_t kCount = 301;
    const auto valueOf = [](int r, size_t i) { return static_cast<T>((i + 1) * 0x9e3779b97f4a7c15 >> (7 * r % 40)); };
    for (const tuttiRedOp_t op : {tuttiBitAnd, tuttiBitOr, tuttiBitXor}) {
      std::vector<T> data(kCount);
      for (size_t i = 0; i < kCount; ++i) data[i] = valueOf(rank, i);
      CHECK_TUTTI(tuttiAllReduce(data.data(), data.data(), kCount, type, op, comm, nullptr));
      for (size_t i = 0; i < kCount; ++i) {
        T want = valueOf(0, i);
        for (int r = 1; r < ranks; ++r) {
          const T next = valueOf(r, i);
          want = static_cast<T>(op == tuttiBitAnd ? want & next : op == tuttiBitOr ? want | next : want ^ next);
        }
        ASSERT_EQ(data[i], want) << "operator " << op << ", element " << i;
      }
    }
  });
}

TEST(BitOperators, OnSignedAndUnsignedByEveryAlgorithm) {
  expectBits<int16_t>(tuttiInt16);
  expectBits<uint64_t>(tuttiUint64);
}

TEST(BitOperators, AreRefusedOnFloatsWithTheTypeToGive) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    double data = 1;
    const auto refusal = [&](tuttiDataType_t type, tuttiRedOp_t op) {
      EXPECT_EQ(tuttiAllReduce(&data, &data, 1, type, op, comm, nullptr), tuttiInvalidArgument);
      return std::string(tuttiGetLastError(comm));
    };
    EXPECT_EQ(refusal(tuttiFloat32, tuttiBitXor),
              "tuttiAllReduce: op is bxor, which is not defined for float: for its bits, give tuttiUint32");
    EXPECT_EQ(refusal(tuttiFloat64, tuttiBitAnd),
              "tuttiAllReduce: op is band, which is not defined for double: for its bits, give tuttiUint64");
    EXPECT_NE(refusal(tuttiBfloat16, tuttiBitOr).find("give tuttiUint16"), std::string::npos);
    EXPECT_NE(refusal(tuttiFloat8e4m3, tuttiBitOr).find("give tuttiUint8"), std::string::npos);
    EXPECT_EQ(data, 1);
  });
}

TEST(BoolOperators, AveragesAndMadeOperatorsAreRefused) {
  withCommunicators(1, testConfig(), [](tuttiComm_t comm, int) {
    uint8_t data = 1;
    tuttiRedOp_t made = tuttiSum;
    EXPECT_EQ(tuttiAllReduce(&data, &data, 1, tuttiBool, tuttiAvg, comm, nullptr), tuttiInvalidArgument);
    EXPECT_STREQ(tuttiGetLastError(comm),
                 "tuttiAllReduce: op is avg, which is not defined for bool: to count or weigh truth values, convert "
                 "them to a type of numbers first");
    EXPECT_EQ(tuttiRedOpCreatePreMulSum(&made, &data, tuttiBool, tuttiScalarHostImmediate, comm), tuttiInvalidArgument);
    EXPECT_STREQ(tuttiGetLastError(comm),
                 "tuttiRedOpCreatePreMulSum: op is mulsum, which is not defined for bool: to count or weigh truth "
                 "values, convert them to a type of numbers first");
    CHECK_TUTTI(tuttiAllReduce(&data, &data, 1, tuttiBool, tuttiSum, comm, nullptr));
  });
}

}  // namespace
