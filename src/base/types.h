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
  kBarrier,
  kGatherV,
  kScatterV
};
inline constexpr int kCollectives = 15;

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
      "all-reduce",   "all-gather",   "reduce-scatter", "broadcast",    "reduce",
      "gather",       "scatter",      "all-to-all",     "all-gather-v", "reduce-scatter-v",
      "all-to-all-v", "send/receive", "barrier",        "gather-v",     "scatter-v"};
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
    case Collective::kGatherV:
      return Collective::kGather;
    case Collective::kScatterV:
      return Collective::kScatter;
    case Collective::kBarrier:
      return Collective::kAllReduce;
    default:
      return collective;
  }
}

namespace detail {

// Every call asks these questions several times: a look into a word is all that it costs.
template <class... All>
constexpr uint32_t setOf(All... all) noexcept {
  return ((uint32_t{1} << static_cast<int>(all)) | ...);
}
constexpr bool isIn(uint32_t set, Collective collective) noexcept {
  return (set >> static_cast<int>(collective) & 1) != 0;
}
inline constexpr uint32_t kReducing =
    setOf(Collective::kAllReduce, Collective::kReduceScatter, Collective::kReduce, Collective::kReduceScatterV);
inline constexpr uint32_t kRooted = setOf(Collective::kBroadcast, Collective::kReduce, Collective::kGather,
                                          Collective::kScatter, Collective::kGatherV, Collective::kScatterV);
inline constexpr uint32_t kOfOneMessage =
    setOf(Collective::kAllReduce, Collective::kBroadcast, Collective::kReduce, Collective::kSendRecv);
inline constexpr uint32_t kOfPrivateCounts = setOf(Collective::kAllToAllV, Collective::kGatherV, Collective::kScatterV);

}  // namespace detail

constexpr bool reduces(Collective collective) noexcept { return detail::isIn(detail::kReducing, collective); }
constexpr bool hasRoot(Collective collective) noexcept { return detail::isIn(detail::kRooted, collective); }

// Whether its counts are of a rank's part, and not of the message as a whole.
constexpr bool partsPerRank(Collective collective) noexcept { return !detail::isIn(detail::kOfOneMessage, collective); }

// Whether a rank knows the counts of its own parts only: what two ranks disagree about shows where they meet.
constexpr bool countsArePrivate(Collective collective) noexcept {
  return detail::isIn(detail::kOfPrivateCounts, collective);
}

}  // namespace tutti
