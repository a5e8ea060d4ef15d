// What joins the GPUs of a communicator, put together from what each rank sees of it: whether the protocol LL128 may be
// used. Pure: every rank decides the same from what all have told.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "device/device.h"

namespace tutti::device {

// What one rank sees.
struct JointView {
  std::vector<GpuLinkType> joints;  // by rank; empty where it did not look
  std::string why;                  // some are unknown
};

Bytes encode(const JointView& view);
JointView decodeJoints(std::span<const std::byte> bytes);  // throws Error(kRemote) for bytes that are none

struct JointVerdict {
  bool linesMoveWhole = false;
  std::string text;  // the verdict in words, with its reason; empty where all ranks share one GPU
};

// Of the views of all ranks, in their order. Over every pair both must say that lines move as a whole.
JointVerdict judge(std::span<const JointView> views);

}  // namespace tutti::device
