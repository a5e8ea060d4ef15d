// The vocabulary that every layer shares: data types, reduction operators and collectives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/data_type.h"

namespace tutti {

// NCCL's come first, with its numbers; then what programs make; then tutti's own, from kFirstOwnNumber on.
enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kAvg, kPreMulSum, kBitAnd, kBitOr, kBitXor };
inline constexpr int kReduceOps = 9;
inline constexpr int kNcclOps = 5;
static_assert(kReduceOps <= 16, "a slot's fingerprint has 4 bits for the operator");

enum class Collective : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kAllGatherV,
  kReduceScatterV,
  kAllToAllV,
  kSendRecv,
  kBarrier
};
inline constexpr int kCollectives = 13;

constexpr std::string_view nameOf(ReduceOp op) noexcept {
  constexpr std::string_view kNames[kReduceOps] = {"sum", "prod", "max", "min", "avg", "mulsum", "band", "bor", "bxor"};
  return kNames[static_cast<int>(op)];
}

// The C API's number of an operator that has one: of those that programs make it is 0.
constexpr int numberOf(ReduceOp op) noexcept {
  if (op >= ReduceOp::kBitAnd) return static_cast<int>(op) - static_cast<int>(ReduceOp::kBitAnd) + kFirstOwnNumber;
  return op < ReduceOp::kPreMulSum ? static_cast<int>(op) : 0;
}

constexpr bool isBitwise(ReduceOp op) noexcept { return op >= ReduceOp::kBitAnd; }

// Whether the operator means something for values of the type. All others the C API refuses.
constexpr bool isDefined(ReduceOp op, DataType type) noexcept {
  if (type == DataType::kBool) return op != ReduceOp::kAvg && op != ReduceOp::kPreMulSum;
  return !isBitwise(op) || !rowOf(type).isFloat();
}

constexpr std::string_view nameOf(Collective collective) noexcept {
  constexpr std::string_view kNames[kCollectives] = {
      "all-reduce", "all-gather",   "reduce-scatter",   "broadcast",    "reduce",       "gather", "scatter",
      "all-to-all", "all-gather-v", "reduce-scatter-v", "all-to-all-v", "send/receive", "barrier"};
  return kNames[static_cast<int>(collective)];
}

// The collective without its variant: a barrier is an all-reduce of nothing, a segment may have any length.
constexpr Collective plainOf(Collective collective) noexcept {
  switch (collective) {
    case Collective::kAllGatherV:
      return Collective::kAllGather;
    case Collective::kReduceScatterV:
      return Collective::kReduceScatter;
    case Collective::kAllToAllV:
      return Collective::kAllToAll;
    case Collective::kBarrier:
      return Collective::kAllReduce;
    default:
      return collective;
  }
}

constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce || collective == Collective::kReduceScatterV;
}

constexpr bool hasRoot(Collective collective) noexcept {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter;
}

}  // namespace tutti
