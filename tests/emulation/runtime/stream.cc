#include "emulation/runtime/stream.h"

#include "emulation/device/workers.h"
#include "emulation/runtime/capture.h"
#include "emulation/runtime/device.h"

namespace tutti::emulation {

unsigned long long Stream::nextId() {
  static std::atomic<unsigned long long> last{0};
  return ++last;
}

void Stream::enqueue(Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  ++enqueued_;
  if (draining_) return;
  draining_ = true;
  runOnWorker([self = shared_from_this()] { self->drain(); });
}

void Stream::drain() {
  std::unique_lock lock(mutex_);
  while (!queue_.empty()) {
    auto work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    ++completed_;
    done_.notify_all();
  }
  draining_ = false;
}

uint64_t Stream::enqueued() const {
  const std::lock_guard lock(mutex_);
  return enqueued_;
}

void Stream::waitFor(uint64_t count) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return completed_ >= count; });
}

bool Stream::idle() const {
  const std::lock_guard lock(mutex_);
  return completed_ == enqueued_;
}

namespace {

struct Until {
  std::shared_ptr<Stream> stream;
  uint64_t count;
};

// What work of `stream` waits for beside the stream itself: the NULL stream and the blocking ones wait for each other.
std::vector<Until> earlier(Stream& stream) {
  std::vector<Until> all;
  const auto add = [&](const std::shared_ptr<Stream>& other) {
    if (other.get() != &stream && !other->idle()) all.push_back({other, other->enqueued()});
  };
  const auto legacy = stream.device.legacy;
  if (&stream == legacy.get()) {
    for (const auto& other : stream.device.streams())
      if (other->blocking) add(other);
  } else if (stream.blocking) {
    add(legacy);
  }
  return all;
}

}  // namespace

cudaError_t submit(Stream& stream, Work work) {
  if (stream.device.failure.happened()) return cudaErrorLaunchFailure;
  if (stream.capturing.load(std::memory_order_acquire)) return captureWork(stream, std::move(work));
  if (&stream == stream.device.legacy.get() && spoilsCapture(stream.device)) return cudaErrorStreamCaptureImplicit;
  auto others = earlier(stream);
  if (others.empty()) {
    stream.enqueue(std::move(work));
  } else {
    stream.enqueue([others = std::move(others), work = std::move(work)] {
      for (const auto& other : others) other.stream->waitFor(other.count);
      work();
    });
  }
  return cudaSuccess;
}

cudaError_t submit(cudaStream_t handle, Work work) {
  const auto stream = streamOf(handle);
  return stream ? submit(*stream, std::move(work)) : cudaErrorInvalidResourceHandle;
}

cudaError_t synchronize(Stream& stream) {
  if (stream.capturing.load(std::memory_order_acquire)) return spoil(stream, cudaErrorStreamCaptureUnsupported);
  if (&stream == stream.device.legacy.get()) {
    if (const auto error = submit(stream, [] {}); error != cudaSuccess) return error;
  }
  stream.waitFor(stream.enqueued());
  return stream.device.failure.happened() ? cudaErrorLaunchFailure : cudaSuccess;
}

}  // namespace tutti::emulation
