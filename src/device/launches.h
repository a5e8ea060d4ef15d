// Launches of the collective kernel, in the order of their communicators and streams.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "device/program.h"

struct CUstream_st;

namespace tutti::device {

using DeviceStream = CUstream_st*;  // the CUDA runtime's; null is its legacy default stream

// The order between the launches of one communicator, whatever streams they are on: a communicator's operations run one
// after the other. Inside a CUDA graph the order is that of the capture.
class LaunchOrder {
 public:
  virtual ~LaunchOrder() = default;
};

// All of them throw Error(kCuda), with CUDA's text, what was asked for and on which device. Any thread; the calling
// thread's current device stays as it was.
class LaunchPort {
 public:
  virtual ~LaunchPort() = default;
  virtual std::unique_ptr<LaunchOrder> newOrder() = 0;
  // Queues one launch of `blocks` blocks as if on each of `streams` at once, behind the earlier launches of every one
  // of `orders`. Returns before it runs. Nothing is allocated; legal during a capture.
  virtual void launch(const KernelLaunch& launch, uint32_t blocks, std::span<const DeviceStream> streams,
                      std::span<LaunchOrder* const> orders) = 0;
  // Whether what is queued on the stream now goes into a graph.
  virtual bool captures(DeviceStream stream) = 0;
  // Waits until all that was queued behind `order` has ended; finished() only looks.
  virtual void drain(LaunchOrder& order) = 0;
  virtual bool finished(LaunchOrder& order) noexcept = 0;  // true, too, when the GPU has failed
};

}  // namespace tutti::device
