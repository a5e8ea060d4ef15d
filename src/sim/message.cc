#include "sim/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernels/cut.h"

namespace tutti::sim {
namespace {

size_t chunkBytesOf(const schedule::Schedule& schedule, uint32_t slotBytes) {
  const size_t bytes = kernels::chunkBytes(slotBytes, schedule.maxSpan);
  if (bytes < kLargestElement)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} puts {} segments into a slot of {} bytes, which leaves less than an element for each; "
                            "choose another algorithm",
                            nameOf(schedule.algorithm), schedule.maxSpan, slotBytes));
  return bytes;
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
    kernels::split(layout, count, std::countr_zero(kElementBytes));
  }
  layout.chunk = chunkBytesOf(schedule, slotBytes) / kElementBytes;
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
