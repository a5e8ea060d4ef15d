#include "gpu_work.h"

#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "errors.h"

namespace tutti_torch {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// Callbacks run in the order of the device's streams.
c10::intrusive_ptr<c10::ivalue::Future> newFuture(c10::Device device) {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                  std::vector<c10::Device>{device});
}

}  // namespace

GpuWork::GpuWork(int rank, About about, c10::Device device)
    : Work(rank, about.type, about.title, about.inputs),
      about_(std::move(about)),
      future_(newFuture(device)),
      device_(device) {}

void GpuWork::add(const About& more) {
  about_.inputs.insert(about_.inputs.end(), more.inputs.begin(), more.inputs.end());
  about_.outputs.insert(about_.outputs.end(), more.outputs.begin(), more.outputs.end());
}

void GpuWork::queued(const c10::Stream& stream, const std::shared_ptr<Communicator>& comm) {
  event_.emplace(stream.device_type());
  event_->record(stream);
  stream_ = stream;
  comm_ = comm;
  about_.inputs.clear();
}

// The future notes the current stream, and makes those of callbacks wait for it.
void GpuWork::tell() {
  const c10::StreamGuard guard(*stream_);
  future_->markCompleted(c10::IValue(about_.outputs));
}

std::exception_ptr GpuWork::failed() const {
  const auto comm = comm_.lock();
  return comm ? comm->error() : nullptr;
}

// The event first: what fails lets the stream go on.
bool GpuWork::hasEnded() const {
  const std::lock_guard lock(mutex_);
  if (ended_ || !event_) return ended_;
  ended_ = event_->query();
  error_ = failed();
  return ended_ = ended_ || error_;
}

std::exception_ptr GpuWork::exception() const {
  hasEnded();
  const std::lock_guard lock(mutex_);
  return error_;
}

void GpuWork::waitOnHost(milliseconds timeout) const {
  const auto begun = steady_clock::now();
  for (microseconds look(10); !hasEnded(); look = std::min(2 * look, microseconds(1'000))) {
    if (timeout != kNoTimeout && steady_clock::now() - begun > timeout)
      tutti_torch::fail(c10::str("Operation timed out! ", about_.title, " #", about_.sequence, " on ", device_,
                                 " has not ended within the ", timeout.count(),
                                 " ms of wait(); it goes on until the group's timeout, or the group is aborted"));
    std::this_thread::sleep_for(look);
  }
  if (const auto error = exception()) std::rethrow_exception(error);
}

// Where a graph is captured no event may be asked, so the communicator alone is.
bool GpuWork::wait(milliseconds timeout) {
  TORCH_CHECK(event_, about_.title, ": this call waits for endCoalescing, whose work is to be waited for");
  if (timeout != kNoTimeout || about_.type == c10d::OpType::BARRIER) {
    waitOnHost(timeout);
    return true;
  }
  if (const auto error = failed()) std::rethrow_exception(error);
  event_->block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return true;
}

}  // namespace tutti_torch
