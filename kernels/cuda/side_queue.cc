#include "kernels/cuda/side_queue.h"

#include <algorithm>

#include "kernels/cuda/check.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/fold_launch.h"

namespace tutti::cuda {
namespace {

constexpr size_t kMostCopiedByKernel = size_t{1} << 31;  // a thread's place in it has 32 bits, and goes beyond the end
constexpr size_t kMostWords = 255;                       // in one call of the driver, which takes fewer than 256

CUstreamBatchMemOpParams paramsOf(const device::WordOp& op) {
  CUstreamBatchMemOpParams params{};
  const auto address = reinterpret_cast<CUdeviceptr>(op.word);
  if (op.kind == device::WordOp::Kind::kWait) {
    params.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
    params.waitValue.address = address;
    params.waitValue.value64 = op.value;
    params.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  } else {
    params.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    params.writeValue.address = address;
    params.writeValue.value64 = op.value;
    params.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;  // behind a fence: pairs with the wait for the value
  }
  return params;
}

struct Reach {
  bool isOfHost = false;  // pinned memory of the host
  bool byKernel = false;  // at its address, from end to end
};

Reach reachOf(const std::byte* memory, size_t bytes) {
  const auto attributesOf = [](const std::byte* at) {
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess) cudaGetLastError();  // looking is no error
    return attributes;
  };
  const auto reaches = [](const cudaPointerAttributes& found, const std::byte* at) {
    return found.type != cudaMemoryTypeUnregistered && found.devicePointer == at;
  };
  if (bytes == 0) return {};
  const std::byte* const last = memory + bytes - 1;
  const cudaPointerAttributes first = attributesOf(memory);
  return {first.type == cudaMemoryTypeHost, reaches(first, memory) && reaches(attributesOf(last), last)};
}

// What a copy engine would do between the host and the GPU, where a kernel can.
bool isForKernel(const std::byte* to, const std::byte* from, size_t bytes) {
  const Reach there = reachOf(to, bytes), here = reachOf(from, bytes);
  return (there.isOfHost || here.isOfHost) && there.byKernel && here.byKernel;
}

// The sum of one source, of whatever type.
device::Fold copyByKernel(std::byte* to, const std::byte* from, size_t bytes) {
  device::Fold fold;
  fold.from[0] = from;
  fold.to[0] = to;
  fold.fromCount = fold.toCount = 1;
  fold.bytes = static_cast<uint32_t>(bytes);
  fold.arithmetic.type = bytes % sizeof(uint64_t) == 0 ? DataType::kUint64 : DataType::kUint8;
  return fold;
}

}  // namespace

OwnStream::OwnStream(SharedContext context, bool urgent) : context_(std::move(context)) {
  const RelaxedCaptureScope aside(*context_);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), context_->ordinal(), "asking for streams' priorities");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least), context_->ordinal(),
        "making a stream");
}

OwnStream::~OwnStream() { cudaStreamDestroy(stream_); }

void OwnStream::finish(const char* attempt) const {
  check(cudaStreamSynchronize(stream_), context_->ordinal(), "{}", attempt);
}

void queueWords(cudaStream_t stream, std::span<const device::WordOp> ops, int ordinal) {
  std::array<CUstreamBatchMemOpParams, kMostWords> params;
  while (!ops.empty()) {
    const size_t count = std::min(ops.size(), kMostWords);
    std::transform(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(count), params.begin(), paramsOf);
    check(statusOf(driver().words(stream, static_cast<unsigned>(count), params.data(), 0)), ordinal,
          "queueing {} waits for words in memory and writes of them", count);
    ops = ops.subspan(count);
  }
}

StreamQueue::StreamQueue(SharedContext context)
    : context_(std::move(context)), eager_(context_, false), event_(*context_) {}

cudaStream_t StreamQueue::streamIn(unsigned long long capture) {
  if (capture == StreamState::kEager) return eager_.get();
  auto found = std::ranges::find(captured_, capture, &Captured::capture);
  if (found == captured_.end()) {
    found = std::ranges::min_element(captured_, {}, &Captured::age);
    found->capture = capture;
  }
  if (!found->stream) found->stream = std::make_unique<OwnStream>(context_, false);
  found->age = ++age_;
  return found->stream->get();
}

void StreamQueue::enter(const StreamState& place) {
  const int ordinal = context_->ordinal();
  current_ = streamIn(place.capture);
  check(cudaEventRecord(event_.get(), place.stream), ordinal, "marking where a stream forks");
  check(cudaStreamWaitEvent(current_, event_.get(), 0), ordinal, "forking a stream");
}

void StreamQueue::leave(const StreamState& place) {
  const int ordinal = context_->ordinal();
  check(cudaEventRecord(event_.get(), current_), ordinal, "marking the end of an operation");
  check(cudaStreamWaitEvent(place.stream, event_.get(), 0), ordinal, "waiting for the end of an operation");
}

void StreamQueue::words(std::span<const device::WordOp> ops) { queueWords(current_, ops, context_->ordinal()); }

// Copies between GPU and host are made by a kernel where one can: by the copy engine, three ranks of one process and
// more stood still on a real GPU (docs/measurements/2026-11-27-h200-second.md); why is not known.
void StreamQueue::copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes <= kMostCopiedByKernel && isForKernel(to, from, bytes)) return fold(copyByKernel(to, from, bytes));
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, current_), context_->ordinal(),
        "queueing a copy of {} bytes", bytes);
}

void StreamQueue::requireAlive() {
  const cudaError_t status = cudaStreamQuery(current_);
  if (status == cudaErrorNotReady)
    cudaGetLastError();  // looking is no error
  else
    check(status, context_->ordinal(), "looking at a stream");
}

void StreamQueue::fold(const Fold& fold) {
  check(launchFold(fold, current_), context_->ordinal(), "launching a reduction of {} bytes", fold.bytes);
}

}  // namespace tutti::cuda
