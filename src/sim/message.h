// What is sent, and how the runtime cuts it: the layout of a call, without the call.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/layout.h"
#include "schedule/schedule.h"

namespace tutti::sim {

inline constexpr size_t kElementBytes = 4;  // of float

// `bytes` as nccl-tests count them: the whole message, or what all ranks' parts are together.
struct Message {
  Collective collective = Collective::kAllReduce;
  size_t bytes = 0;
  int root = 0;
};

// As the runtime cuts a call (kernels/cut.h). Throws Error(kInvalidArgument) where a slot has no room for an element
// of each segment that it would carry.
kernels::Layout layoutOf(const Message& message, const schedule::Schedule& schedule, uint32_t slotBytes);

// What kernels::countOf() gives, in a time that does not grow with the step's span: as no lengths come from tables, all
// segments are alike but for the shorter one, and the empty ones behind it.
size_t countOf(const kernels::Layout& layout, const schedule::Step& step, size_t round) noexcept;

// nccl-tests' ratio of the bandwidth of the busiest link to the bytes of the message a second.
double busFactor(Collective collective, int ranks) noexcept;

}  // namespace tutti::sim
