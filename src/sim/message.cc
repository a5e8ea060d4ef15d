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

// How many of the step's segments are among the first `bound` of all.
size_t spannedBelow(size_t bound, const schedule::Step& step, size_t segments) noexcept {
  const size_t end = size_t{step.segment} + step.span;
  const size_t wrapped = end > segments ? std::min(end - segments, bound) : 0;
  return wrapped + std::min(end, bound) - std::min<size_t>(step.segment, bound);
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

size_t countOf(const kernels::Layout& layout, const schedule::Step& step, size_t round) noexcept {
  if (step.span == 1) return layout.piece(step.segment, round, false).count;
  if (layout.perRank) return step.span * layout.piece(0, round, false).count;
  const size_t full = std::min<size_t>(layout.total / layout.stride, layout.segments);
  const size_t ofFull = spannedBelow(full, step, layout.segments);
  const size_t ofShorter = full < layout.segments ? spannedBelow(full + 1, step, layout.segments) - ofFull : 0;
  size_t count = ofFull == 0 ? 0 : ofFull * layout.piece(0, round, false).count;
  if (ofShorter != 0) count += layout.piece(static_cast<uint32_t>(full), round, false).count;
  return count;
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
