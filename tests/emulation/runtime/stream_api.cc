#include <cuda_runtime_api.h>

#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"
#include "emulation/runtime/error.h"

using namespace tutti::emulation;

namespace {

// What a cudaStream_t points to, the NULL stream apart.
struct StreamHandle {
  static constexpr uint64_t kMagic = 0x6d61657274736d65;
  uint64_t magic = kMagic;
  std::shared_ptr<Stream> stream;
};

StreamHandle* handleOf(cudaStream_t stream) {
  auto* handle = reinterpret_cast<StreamHandle*>(stream);
  return handle && stream != cudaStreamLegacy && handle->magic == StreamHandle::kMagic ? handle : nullptr;
}

cudaError_t query(Stream& stream) {
  if (stream.capturing) return spoil(stream, cudaErrorStreamCaptureUnsupported);
  if (stream.device.failure.happened()) return cudaErrorLaunchFailure;
  bool idle = stream.idle();
  if (&stream == stream.device.legacy.get())
    for (const auto& other : stream.device.streams()) idle = idle && (!other->blocking || other->idle());
  return idle ? cudaSuccess : cudaErrorNotReady;
}

}  // namespace

namespace tutti::emulation {

std::shared_ptr<Stream> streamOf(cudaStream_t stream) {
  if (!stream || stream == cudaStreamLegacy) return currentDevice().legacy;
  const StreamHandle* handle = handleOf(stream);
  return handle ? handle->stream : nullptr;
}

}  // namespace tutti::emulation

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (!stream || flags > cudaStreamNonBlocking) return note(cudaErrorInvalidValue);
  if (deviceCount() == 0) return note(cudaErrorNoDevice);
  auto* handle = new StreamHandle;
  handle->stream = std::make_shared<Stream>(currentDevice(), flags == cudaStreamDefault);
  currentDevice().add(handle->stream);
  *stream = reinterpret_cast<cudaStream_t>(handle);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

// Its work goes on to the end; only the handle is gone.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  StreamHandle* handle = handleOf(stream);
  if (!handle) return note(cudaErrorInvalidResourceHandle);
  const auto error =
      handle->stream->capturing ? spoil(*handle->stream, cudaErrorStreamCaptureUnsupported) : cudaSuccess;
  if (error != cudaSuccess) return note(error);
  handle->magic = 0;
  delete handle;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const auto stream = streamOf(handle);
  return note(stream ? synchronize(*stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const auto stream = streamOf(handle);
  return note(stream ? query(*stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* ordinal) {
  const auto stream = streamOf(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  *ordinal = stream->device.ordinal;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  const auto stream = streamOf(handle);
  if (!stream) return note(cudaErrorInvalidResourceHandle);
  if (stream->capturing) return note(cudaErrorStreamCaptureUnsupported);  // as the driver 580 of an H200 answers
  if (const auto error = unsafeCall(); error != cudaSuccess) return note(error);
  *id = stream->id;
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  if (!function) return note(cudaErrorInvalidValue);
  return note(submit(handle, [=] { function(argument); }));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
