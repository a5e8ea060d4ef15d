#include "kernels/cuda/order.h"

#include <algorithm>

#include "kernels/cuda/check.h"

namespace tutti::cuda {
namespace {

Order& orderOf(device::LaunchOrder* order) { return static_cast<Order&>(*order); }

void await(const StreamState& place, cudaEvent_t event, int ordinal) {
  check(cudaStreamWaitEvent(place.stream, event, 0), ordinal, "ordering a launch behind an earlier one");
}

void record(cudaEvent_t event, const StreamState& place, int ordinal) {
  check(cudaEventRecord(event, place.stream), ordinal, "marking a launch for later ones to follow");
}

// A stream that captures does not tell, nor does any other while one captures in the global mode.
unsigned long long idOf(cudaStream_t stream, int ordinal) {
  const RelaxedCapture aside(ordinal);
  unsigned long long id = 0;
  check(cudaStreamGetId(stream, &id), ordinal, "asking for the number of a stream");
  return id;
}

const char* stateOf(const StreamState& place) { return place.captures() ? "captures a CUDA graph" : "does not"; }

void requireOneCapture(const StreamState& first, const StreamState& other, size_t number, int ordinal) {
  if (first.capture == other.capture) return;
  const char* difference = first.captures() && other.captures() ? "captures another CUDA graph" : stateOf(other);
  throw Error(
      ErrorCode::kInvalidUsage,
      fmt::format("GPU {}: the calls of this group go out in one launch, but the stream of the first {} and that "
                  "of number {} {}: capture all calls of a group on one GPU into one graph, or none",
                  ordinal, stateOf(first), number, difference));
}

}  // namespace

StreamState StreamState::of(cudaStream_t stream, int ordinal) {
  StreamState state;
  state.stream = stream;
  auto status = cudaStreamCaptureStatusNone;
  // This question spoils no capture, whatever the stream.
  check(cudaStreamIsCapturing(stream, &status), ordinal, "asking whether a stream captures");
  if (status == cudaStreamCaptureStatusInvalidated)
    throw Error(ErrorCode::kCuda, fmt::format("GPU {}: the stream captures a CUDA graph that an earlier call made "
                                              "invalid: end the capture, and look at what was captured",
                                              ordinal));
  if (status == cudaStreamCaptureStatusActive)
    check(cudaStreamGetCaptureInfo(stream, &status, &state.capture), ordinal, "asking for the number of a capture");
  else
    state.id = idOf(stream, ordinal);
  return state;
}

Event::Event(const Context& context) {
  const RelaxedCaptureScope aside(context);
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), context.ordinal(), "making an event");
}

Event::~Event() { cudaEventDestroy(event_); }

Order::Order(SharedContext context)
    : context_(std::move(context)),
      eager_(*context_),
      captured_{Last(*context_), Last(*context_), Last(*context_), Last(*context_)},
      joint_(*context_) {}

Order::~Order() = default;

Order::Last* Order::lastIn(unsigned long long capture) {
  if (capture == StreamState::kEager) return eager_.age != 0 ? &eager_ : nullptr;
  const auto found = std::find_if(captured_.begin(), captured_.end(),
                                  [&](const Last& last) { return last.age != 0 && last.capture == capture; });
  return found != captured_.end() ? &*found : nullptr;
}

Order::Last& Order::oldestCaptured() {
  return *std::min_element(captured_.begin(), captured_.end(),
                           [](const Last& a, const Last& b) { return a.age < b.age; });
}

void Order::follow(const StreamState& place) {
  const Last* last = lastIn(place.capture);
  if (last != nullptr && !place.is(last->stream)) await(place, last->event.get(), context_->ordinal());
}

cudaEvent_t Order::mark(const StreamState& place) {
  Last* known = lastIn(place.capture);
  Last& last = known != nullptr ? *known : place.captures() ? oldestCaptured() : eager_;
  record(last.event.get(), place, context_->ordinal());
  last.stream = place.id;
  last.capture = place.capture;
  last.age = ++age_;
  return last.event.get();
}

// A wait goes by what the event stands for when the wait is queued, so one event serves any number of streams.
void Order::join(const StreamState& place, const StreamState& other) {
  record(joint_.get(), other, context_->ordinal());
  await(place, joint_.get(), context_->ordinal());
}

void Order::drain() {
  const RelaxedCaptureScope aside(*context_);
  check(cudaEventSynchronize(eager_.event.get()), context_->ordinal(), "waiting for the last launch");
}

bool Order::finished() noexcept try {
  const RelaxedCaptureScope aside(*context_);
  const cudaError_t status = cudaEventQuery(eager_.event.get());
  if (status != cudaSuccess) cudaGetLastError();  // looking is no error
  return status != cudaErrorNotReady;
} catch (const std::exception&) {
  return true;
}

StreamFork::StreamFork(const Context& context, std::span<const device::DeviceStream> streams,
                       std::span<device::LaunchOrder* const> orders)
    : context_(context), streams_(streams), orders_(orders) {
  if (streams.empty() || orders.empty())
    throw Error(ErrorCode::kInternal, "a launch has no stream or belongs to no communicator");
  first_ = StreamState::of(streams.front(), context.ordinal());
  for (size_t i = 1; i < streams.size(); ++i)
    requireOneCapture(first_, StreamState::of(streams[i], context.ordinal()), i + 1, context.ordinal());
  for (const device::DeviceStream stream : streams.subspan(1)) {
    const StreamState other = StreamState::of(stream, context.ordinal());
    if (!first_.is(other.id)) orderOf(orders.front()).join(first_, other);
  }
  for (device::LaunchOrder* order : orders) orderOf(order).follow(first_);
}

void StreamFork::end() {
  cudaEvent_t launched = nullptr;
  for (device::LaunchOrder* order : orders_) launched = orderOf(order).mark(first_);
  for (const device::DeviceStream stream : streams_.subspan(1)) {
    const StreamState other = StreamState::of(stream, context_.ordinal());
    if (!first_.is(other.id)) await(other, launched, context_.ordinal());
  }
}

}  // namespace tutti::cuda
