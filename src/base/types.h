// The vocabulary that every layer shares: data types, reduction operators and collectives.
// The numbers of ReduceOp are NCCL's and the C API's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/data_type.h"

namespace tutti {

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kAvg, kPreMulSum };
inline constexpr int kReduceOps = 6;

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
  constexpr std::string_view kNames[kReduceOps] = {"sum", "prod", "max", "min", "avg", "mulsum"};
  return kNames[static_cast<int>(op)];
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

constexpr bool reduces(Collective collective) noexcept {
  return collective == Collective::kAllReduce || collective == Collective::kReduceScatter ||
         collective == Collective::kReduce || collective == Collective::kReduceScatterV;
}

constexpr bool hasRoot(Collective collective) noexcept {
  return collective == Collective::kBroadcast || collective == Collective::kReduce ||
         collective == Collective::kGather || collective == Collective::kScatter ||
         collective == Collective::kGatherV || collective == Collective::kScatterV;
}

// Whether a rank knows the counts of its own parts only: what two ranks disagree about shows where they meet.
constexpr bool countsArePrivate(Collective collective) noexcept {
  return collective == Collective::kAllToAllV || collective == Collective::kGatherV ||
         collective == Collective::kScatterV;
}

}  // namespace tutti
