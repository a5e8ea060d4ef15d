#include "sim/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace tutti::sim {
namespace {

constexpr size_t kLine = 64;

size_t chunkBytes(const schedule::Schedule& schedule, uint32_t slotBytes) {
  const size_t bytes = slotBytes / schedule.maxSpan;
  if (bytes < kElementBytes)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} puts {} segments into a slot of {} bytes, which leaves less than an element for each; "
                            "choose another algorithm, or longer slots",
                            nameOf(schedule.algorithm), schedule.maxSpan, slotBytes));
  return bytes < kLine ? bytes : bytes / kLine * kLine;
}

}  // namespace

kernels::Layout layoutOf(const Message& message, const schedule::Schedule& schedule, uint32_t slotBytes) {
  kernels::Layout layout;
  layout.segments = schedule.segments;
  layout.perRank = schedule.map == schedule::SegmentMap::kPerRank;
  const size_t count = std::max<size_t>(message.bytes / kElementBytes, 1);
  if (layout.perRank) {
    layout.stride = std::max<size_t>(count / static_cast<size_t>(schedule.size), 1);
  } else {
    constexpr size_t kInLine = kLine / kElementBytes;
    const size_t share = count <= kInLine ? count : (count + layout.segments - 1) / layout.segments;
    layout.total = count;
    layout.stride = (share + kInLine - 1) / kInLine * kInLine;
  }
  layout.chunk = chunkBytes(schedule, slotBytes) / kElementBytes;
  return layout;
}

double busFactor(Collective collective, int ranks) noexcept {
  const double others = double(ranks - 1) / ranks;
  switch (plainOf(collective)) {
    case Collective::kAllReduce:
      return 2 * others;
    case Collective::kBroadcast:
    case Collective::kReduce:
      return 1;
    default:
      return others;
  }
}

}  // namespace tutti::sim
