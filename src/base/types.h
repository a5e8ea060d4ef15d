// The vocabulary that every layer shares: data types, reduction operators and collectives.
// The numbers of DataType and ReduceOp are NCCL's and the C API's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti {

enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2
};
inline constexpr int kDataTypes = 12;

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
  kBarrier
};
inline constexpr int kCollectives = 13;

// How a slot on a GPU says that it is full.
//   kSimple  its header's sequence number: any link.
//   kLL      a 4-byte flag beside every 4 bytes of data: one trip, half the bandwidth.
//   kLL128   an 8-byte flag in each line of 128 bytes, which the link must move as a whole: one GPU, or NVLink.
enum class Protocol : uint8_t { kSimple, kLL, kLL128 };
inline constexpr int kProtocols = 3;

constexpr std::string_view nameOf(Protocol protocol) noexcept {
  constexpr std::string_view kNames[kProtocols] = {"simple", "ll", "ll128"};
  return kNames[static_cast<int>(protocol)];
}

constexpr size_t sizeOf(DataType type) noexcept {
  constexpr uint64_t kSizes =
      0x1128'4288'4411;  // four bits each, the first type lowest: a shift, not a table in memory
  return kSizes >> (4 * static_cast<int>(type)) & 15;
}

inline constexpr size_t kLargestElement = 8;

constexpr std::string_view nameOf(DataType type) noexcept {
  constexpr std::string_view kNames[kDataTypes] = {"int8", "uint8", "int32",  "uint32",   "int64",  "uint64",
                                                   "half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2"};
  return kNames[static_cast<int>(type)];
}

constexpr std::string_view nameOf(ReduceOp op) noexcept {
  constexpr std::string_view kNames[kReduceOps] = {"sum", "prod", "max", "min", "avg", "mulsum"};
  return kNames[static_cast<int>(op)];
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
