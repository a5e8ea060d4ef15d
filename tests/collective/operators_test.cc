// Every data type with every operator through the C API, with values whose results are exact in any order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/host/combine.h"
#include "support/api_ranks.h"

namespace {

using namespace tutti;
using namespace tutti::test;

bool isNarrowFloat(DataType type) { return rowOf(type).isFloat() && sizeOf(type) < sizeof(float); }

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

double reduced(ReduceOp op, const std::vector<double>& values, bool integer, double factor) {
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
  const bool integer = !isNarrowFloat(type) && type != DataType::kFloat32 && type != DataType::kFloat64;
  withCommunicators(kRanks, testConfig(), [&](tuttiComm_t comm, int rank) {
    for (int o = 0; o < kReduceOps; ++o) {
      const auto op = static_cast<ReduceOp>(o);
      const auto valueOf = [&](int r, size_t i) {  // products stay small: 1 and 2 only
        return op == ReduceOp::kProd ? 1.0 + static_cast<double>((static_cast<size_t>(r) + i) % 2)
                                     : static_cast<double>((static_cast<size_t>(r) * 3 + i) % 4);
      };
      std::vector<std::byte> send(kCount * width), recv(kCount * width);
      for (size_t i = 0; i < kCount; ++i) {
        const uint64_t bits = encode(type, valueOf(rank, i));
        std::memcpy(send.data() + i * width, &bits, width);
      }
      auto redOp = static_cast<tuttiRedOp_t>(o);
      uint64_t factor = encode(type, 2);
      if (op == ReduceOp::kPreMulSum)
        CHECK_TUTTI(tuttiRedOpCreatePreMulSum(&redOp, &factor, static_cast<tuttiDataType_t>(type),
                                              tuttiScalarHostImmediate, comm));
      CHECK_TUTTI(
          tuttiAllReduce(send.data(), recv.data(), kCount, static_cast<tuttiDataType_t>(type), redOp, comm, nullptr));
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

}  // namespace
