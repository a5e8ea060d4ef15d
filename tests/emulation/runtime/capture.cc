#include "emulation/runtime/capture.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "emulation/runtime/device.h"

namespace tutti::emulation {
namespace {

struct Captures {
  std::mutex mutex;
  std::vector<std::shared_ptr<Capture>> open;
  std::atomic<size_t> count{0};  // of the open ones: most calls need no more
  unsigned long long lastId = 0;
};

Captures& captures() {
  static auto* const all = new Captures;  // outlive every thread of the program
  return *all;
}

thread_local cudaStreamCaptureMode threadMode = cudaStreamCaptureModeGlobal;

void enter(Stream& stream, const std::shared_ptr<Capture>& capture, std::vector<cudaGraphNode_t> tail) {
  stream.capture = capture;
  stream.tail = std::move(tail);
  capture->streams.push_back(stream.shared_from_this());
  if (stream.blocking) ++stream.device.blockingCaptures;
  stream.capturing.store(true, std::memory_order_release);  // with submit()'s load
}

void leave(Stream& stream) {
  stream.capture = nullptr;
  stream.tail.clear();
  if (stream.blocking) --stream.device.blockingCaptures;
  stream.capturing.store(false, std::memory_order_release);  // with submit()'s load
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return error;
}

void close(const std::shared_ptr<Capture>& capture) {
  for (const auto& stream : capture->streams) leave(*stream);
  capture->streams.clear();
  capture->ended = true;
  std::erase(captures().open, capture);
  captures().count = captures().open.size();
}

cudaError_t whatEnds(const Stream& stream, const Capture& capture) {
  if (capture.origin != &stream) return cudaErrorStreamCaptureUnmatched;
  if (capture.mode != cudaStreamCaptureModeRelaxed && capture.owner != std::this_thread::get_id())
    return cudaErrorStreamCaptureWrongThread;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  return capture.graph->endsIn(stream.tail) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

}  // namespace

cudaError_t beginCapture(Stream& stream, cudaStreamCaptureMode mode) {
  if (&stream == stream.device.legacy.get()) return cudaErrorStreamCaptureUnsupported;
  const std::lock_guard lock(captures().mutex);
  if (stream.capture) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->id = ++captures().lastId;
  capture->mode = mode;
  capture->owner = std::this_thread::get_id();
  capture->origin = &stream;
  captures().open.push_back(capture);
  captures().count = captures().open.size();
  enter(stream, capture, {});
  return cudaSuccess;
}

cudaError_t endCapture(Stream& stream, std::unique_ptr<Graph>& graph) {
  const std::lock_guard lock(captures().mutex);
  const auto capture = stream.capture;
  if (!capture) return cudaErrorIllegalState;
  const auto error = whatEnds(stream, *capture);
  if (error == cudaErrorStreamCaptureUnmatched || error == cudaErrorStreamCaptureWrongThread)
    return invalidate(*capture, error);  // it goes on, but to no good end
  close(capture);
  if (error == cudaSuccess) graph = std::move(capture->graph);
  return error;
}

cudaError_t captureWork(Stream& stream, Work work) {
  const std::lock_guard lock(captures().mutex);
  if (!stream.capture || stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  stream.tail = {stream.capture->graph->add(std::move(work), stream.tail)};
  return cudaSuccess;
}

CapturePoint capturePoint(Stream& stream) {
  const std::lock_guard lock(captures().mutex);
  return {stream.capture, stream.tail};
}

cudaError_t joinCapture(Stream& stream, const CapturePoint& point) {
  const std::lock_guard lock(captures().mutex);
  if (stream.capture && !point.capture) return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation);
  if (point.capture->ended) return cudaErrorCapturedEvent;
  if (point.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!stream.capture) {
    if (&stream == stream.device.legacy.get()) return invalidate(*point.capture, cudaErrorStreamCaptureImplicit);
    enter(stream, point.capture, point.tail);
    return cudaSuccess;
  }
  if (stream.capture != point.capture) {
    invalidate(*stream.capture, cudaErrorStreamCaptureMerge);
    return invalidate(*point.capture, cudaErrorStreamCaptureMerge);
  }
  for (const auto node : point.tail)
    if (std::find(stream.tail.begin(), stream.tail.end(), node) == stream.tail.end()) stream.tail.push_back(node);
  return cudaSuccess;
}

cudaError_t spoil(Stream& stream, cudaError_t error) {
  const std::lock_guard lock(captures().mutex);
  return stream.capture ? invalidate(*stream.capture, error) : error;
}

bool spoilsCapture(Device& device) {
  if (device.blockingCaptures == 0) return false;
  const std::lock_guard lock(captures().mutex);
  for (const auto& capture : captures().open)
    for (const auto& stream : capture->streams)
      if (stream->blocking && &stream->device == &device) capture->invalid = true;
  return true;
}

cudaError_t unsafeCall() {
  if (captures().count == 0 || threadMode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  const std::lock_guard lock(captures().mutex);
  auto result = cudaSuccess;
  for (const auto& capture : captures().open) {
    const bool mine = capture->owner == std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed;
    const bool everybodys = threadMode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (mine || everybodys) result = invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return result;
}

cudaStreamCaptureMode exchangeThreadMode(cudaStreamCaptureMode mode) { return std::exchange(threadMode, mode); }

CaptureInfo captureInfo(Stream& stream) {
  const std::lock_guard lock(captures().mutex);
  if (!stream.capture) return {};
  const auto status = stream.capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return {status, stream.capture->id, stream.capture->graph.get(), &stream.tail};
}

}  // namespace tutti::emulation
