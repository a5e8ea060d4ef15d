// The order between launches that are on different streams, kept by events.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <span>

#include "device/device.h"
#include "kernels/cuda/memory.h"

namespace tutti::cuda {

// Where a launch goes: a stream, and the capture that it is part of.
struct StreamState {
  static constexpr unsigned long long kEager = ~0ull, kNoId = ~0ull;
  cudaStream_t stream = nullptr;
  // Of the stream: a new stream may get the handle of an old one, but not its id. A stream that captures does not tell
  // it; there everything waits for the last launch, which costs a stream that waits for itself nothing.
  unsigned long long id = kNoId;
  unsigned long long capture = kEager;  // the capture's own number

  bool captures() const noexcept { return capture != kEager; }
  // Certainly the same stream.
  bool is(unsigned long long other) const noexcept { return id != kNoId && id == other; }
  // Throws Error(kCuda) where nothing may be queued now. `ordinal` is for its text.
  static StreamState of(cudaStream_t stream, int ordinal);
};

class Event {
 public:
  explicit Event(const Context& context);
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// What one communicator launched last, as eager work and within each capture: the two never wait for each other. While
// a stream captures it must not wait for an event from outside, and an event of a capture means nothing outside of it.
// So the order between a graph that is replayed and launches on other streams is up to whoever replays it.
//
// One thread at a time, but for drain() and finished().
class Order : public device::LaunchOrder {
 public:
  explicit Order(SharedContext context);
  ~Order() override;
  // What is queued at `place` from now on runs behind the last launch.
  void follow(const StreamState& place);
  // What was queued at `place` so far is the last launch. The event stands for it.
  cudaEvent_t mark(const StreamState& place);
  // As if all that `other` holds had been queued at `place`.
  void join(const StreamState& place, const StreamState& other);
  // Waits for the last launch that was eager.
  void drain();
  // Whether that has ended, or never will because the GPU failed.
  bool finished() noexcept;

 private:
  struct Last {
    explicit Last(const Context& context) : event(context) {}
    Event event;
    unsigned long long stream = 0, capture = 0;
    uint64_t age = 0;  // 0: nothing was launched yet
  };
  Last* lastIn(unsigned long long capture);
  Last& oldestCaptured();

  SharedContext context_;
  Last eager_;
  // Captures that go on at the same time. The oldest makes room for a fifth, and is then no longer kept in order with
  // what it captures next.
  std::array<Last, 4> captured_;
  Event joint_;
  uint64_t age_ = 0;
};

// A launch that counts for several streams: it goes to the first, which waits for what the others hold by now, and
// they wait for it. All of them must capture into one graph, or none; else Error(kInvalidUsage).
class StreamFork {
 public:
  StreamFork(const Context& context, std::span<const device::DeviceStream> streams,
             std::span<device::LaunchOrder* const> orders);
  cudaStream_t stream() const noexcept { return first_.stream; }
  const StreamState& place() const noexcept { return first_; }
  // Call it once the launch is queued.
  void end();

 private:
  const Context& context_;
  std::span<const device::DeviceStream> streams_;
  std::span<device::LaunchOrder* const> orders_;
  StreamState first_;
};

}  // namespace tutti::cuda
