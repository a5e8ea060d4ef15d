#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>

#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"

using namespace tutti::emulation;

namespace {

// One passing of a stream over an event.
class Recording {
 public:
  void pass() {
    const std::lock_guard lock(mutex_);
    at_ = std::chrono::steady_clock::now();
    passed_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passed_; });
  }
  bool passed() {
    const std::lock_guard lock(mutex_);
    return passed_;
  }
  std::chrono::steady_clock::time_point at() {
    const std::lock_guard lock(mutex_);
    return at_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool passed_ = false;
  std::chrono::steady_clock::time_point at_;
};

struct Event {
  static constexpr uint64_t kMagic = 0x6d65746e65766521;
  uint64_t magic = kMagic;
  unsigned flags = 0;
  Device& device;
  std::mutex mutex;                      // of what follows: the last record
  std::shared_ptr<Recording> recording;  // null: none yet
  CapturePoint point;                    // when a stream captured it
};

Event* eventOf(cudaEvent_t handle) {
  auto* event = reinterpret_cast<Event*>(handle);
  return event && event->magic == Event::kMagic ? event : nullptr;
}

cudaError_t record(Event& event, Stream& stream) {
  if (&event.device != &stream.device) return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(event.mutex);
  event.point = {};
  if (stream.capturing) {
    event.point = capturePoint(stream);
    event.recording = nullptr;
    return cudaSuccess;
  }
  auto recording = std::make_shared<Recording>();
  const auto error = submit(stream, [recording] { recording->pass(); });
  if (error == cudaSuccess) event.recording = std::move(recording);
  return error;
}

cudaError_t wait(Stream& stream, Event& event) {
  const std::lock_guard lock(event.mutex);
  if (stream.capturing || event.point.capture) return joinCapture(stream, event.point);
  if (!event.recording) return cudaSuccess;
  return submit(stream, [recording = event.recording] { recording->wait(); });
}

// What the host can ask about; `error` says why it cannot.
std::shared_ptr<Recording> recordingOf(cudaEvent_t handle, cudaError_t& error) {
  Event* event = eventOf(handle);
  error = event ? cudaSuccess : cudaErrorInvalidResourceHandle;
  if (!event) return nullptr;
  const std::lock_guard lock(event->mutex);
  if (event->point.capture)
    error = cudaErrorCapturedEvent;
  else if (event->device.failure.happened())
    error = cudaErrorLaunchFailure;
  return error == cudaSuccess ? event->recording : nullptr;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming;
  if (!event) return note(cudaErrorInvalidValue);
  if (flags & ~kKnown) return note(flags & cudaEventInterprocess ? cudaErrorNotSupported : cudaErrorInvalidValue);
  *event = reinterpret_cast<cudaEvent_t>(
      new Event{.flags = flags, .device = currentDevice(), .mutex = {}, .recording = {}, .point = {}});
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  Event* event = eventOf(handle);
  if (!event) return note(cudaErrorInvalidResourceHandle);
  event->magic = 0;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t streamHandle) {
  Event* event = eventOf(handle);
  const auto stream = streamOf(streamHandle);
  return note(event && stream ? record(*event, *stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t streamHandle, cudaEvent_t handle, unsigned flags) {
  Event* event = eventOf(handle);
  const auto stream = streamOf(streamHandle);
  if (!event || !stream) return note(cudaErrorInvalidResourceHandle);
  return note(flags == 0 ? wait(*stream, *event) : cudaErrorNotSupported);
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  cudaError_t error = unsafeCall();
  if (error != cudaSuccess) return note(error);
  const auto recording = recordingOf(handle, error);
  return note(recording && !recording->passed() ? cudaErrorNotReady : error);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  cudaError_t error = unsafeCall();
  if (error != cudaSuccess) return note(error);
  if (const auto recording = recordingOf(handle, error)) {
    recording->wait();
    (void)recordingOf(handle, error);  // it may have passed because the kernels before it failed
  }
  return note(error);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  cudaError_t error = cudaSuccess, errorOfEnd = cudaSuccess;
  const auto first = recordingOf(begin, error), last = recordingOf(end, errorOfEnd);
  if (error != cudaSuccess || errorOfEnd != cudaSuccess) return note(error != cudaSuccess ? error : errorOfEnd);
  const unsigned flags = eventOf(begin)->flags | eventOf(end)->flags;
  if (!first || !last || flags & cudaEventDisableTiming) return note(cudaErrorInvalidResourceHandle);
  if (!first->passed() || !last->passed()) return note(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(last->at() - first->at()).count();
  return cudaSuccess;
}
