// The steps of a call that goes through its links once, in slots of a few bytes, worked out: which links each waits
// for, where its pieces lie, and how long they are. A small call that is made again differs by its buffers and its
// number alone, so nothing of this has to be found anew.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/layout.h"
#include "link/link.h"
#include "schedule/schedule.h"

namespace tutti::engine {

// Where a step reads or writes.
struct ShortPlace {
  schedule::Operand::Kind kind = schedule::Operand::Kind::kInput;
  size_t offset = 0;             // into the input or the output
  std::byte* scratch = nullptr;  // of that kind
  uint32_t link = 0;             // of that kind: the number in the step's links
};

struct ShortStep {
  uint32_t count = 0, bytes = 0;  // of the payload of each slot
  bool copies = false;            // its one source is stored as it is
  bool finalises = false;
  // Each a part of the lists below, from here on.
  uint32_t ins = 0, outs = 0, from = 0, to = 0;
  uint16_t inCount = 0, outCount = 0, fromCount = 0, toCount = 0;
};

struct ShortSteps {
  std::vector<ShortStep> steps;  // that have something to do, in their order; empty: the call is no short one
  std::vector<link::RecvEnd*> ins;
  std::vector<link::SendEnd*> outs;
  std::vector<ShortPlace> from, to;

  // For all calls of the schedule: working them out allocates nothing.
  void reserve(const schedule::Schedule& schedule);
  void clear() noexcept { steps.clear(), ins.clear(), outs.clear(), from.clear(), to.clear(); }
};

// What is longer is worth another look: at single copies, and at stores around the caches.
inline constexpr size_t kMostShortBytes = 4 << 10;

// What a lane has to work with.
struct ShortMeans {
  const schedule::Schedule& schedule;
  std::span<link::RecvEnd* const> ins;   // as Schedule::inPeers
  std::span<link::SendEnd* const> outs;  // as Schedule::outPeers
  std::byte* scratch;
  uint32_t slotBytes;
};

// `divides`: steps that finalise do not store what they read.
void workOut(const ShortMeans& means, const kernels::Layout& layout, size_t elementBytes, bool divides,
             ShortSteps& all) noexcept;

}  // namespace tutti::engine
