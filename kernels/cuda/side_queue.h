// A stream of a communicator's own, forked from a stream of the user and joined to it again by events.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "device/device.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/order.h"

namespace tutti::cuda {

// A stream that goes with its owner.
class OwnStream {
 public:
  // `urgent`: work of it goes ahead of other streams', and is not queued behind them in the hardware.
  OwnStream(SharedContext context, bool urgent);
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream();
  cudaStream_t get() const noexcept { return stream_; }
  void finish(const char* attempt) const;

 private:
  SharedContext context_;
  cudaStream_t stream_ = nullptr;
};

// Queues them on `stream`.
void queueWords(cudaStream_t stream, std::span<const device::WordOp> ops, int ordinal);

// One stream for what is eager, and one for each capture that goes on at the same time: a stream that takes part in a
// capture can do nothing else until the capture has ended.
class StreamQueue : public device::SideQueue {
 public:
  explicit StreamQueue(SharedContext context);
  // From here on, until leave(), all goes behind what `place` holds now, and into its capture if it captures.
  void enter(const StreamState& place);
  // `place` waits for all that was queued.
  void leave(const StreamState& place);

  void words(std::span<const device::WordOp> ops) override;
  void copy(std::byte* to, const std::byte* from, size_t bytes) override;
  void fold(const device::Fold& fold) override;
  void requireAlive() override;

 private:
  struct Captured {
    unsigned long long capture = StreamState::kEager;
    uint64_t age = 0;
    std::unique_ptr<OwnStream> stream;
  };
  cudaStream_t streamIn(unsigned long long capture);

  SharedContext context_;
  OwnStream eager_;
  std::array<Captured, 4> captured_;  // the oldest makes room for a fifth
  uint64_t age_ = 0;
  Event event_;
  cudaStream_t current_ = nullptr;
};

}  // namespace tutti::cuda
