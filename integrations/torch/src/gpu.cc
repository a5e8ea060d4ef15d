#include "gpu.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <thread>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "errors.h"
#include "stream_handle.h"

namespace tutti_torch {
namespace {

using Lock = std::lock_guard<std::mutex>;
using std::chrono::steady_clock;

c10::impl::VirtualGuardImpl gpus() { return c10::impl::VirtualGuardImpl(c10::kCUDA); }

void follow(const c10::Stream& later, const c10::Stream& earlier) {
  c10::Event event(c10::kCUDA);
  event.record(earlier);
  event.block(later);
}

// Its memory is not used again, once it is free, before that stream has done what it was given.
void keep(const at::Tensor& tensor, const c10::Stream& stream) {
  if (tensor.is_sparse()) {
    keep(tensor._indices(), stream);
    keep(tensor._values(), stream);
  } else if (tensor.has_storage()) {
    gpus().recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
  }
}

void keep(const Tensors& tensors, const c10::Stream& stream) {
  for (const auto& tensor : tensors) keep(tensor, stream);
}

}  // namespace

Gpu::Gpu(c10::intrusive_ptr<c10d::Store> store, int rank, int size, milliseconds timeout, std::string group)
    : store_(std::move(store)), rank_(rank), size_(size), group_(std::move(group)), timeoutMs_(timeout.count()) {}

GpuWorkPtr Gpu::issue(c10::Device device, About about, Body body) {
  return run(device, std::move(about), std::move(body), [this]() -> Line& { return lineOfAll(); });
}

GpuWorkPtr Gpu::message(c10::Device device, About about, int peer, Body body) {
  return run(device, std::move(about), std::move(body), [=, this]() -> Line& { return lineTo(peer); });
}

GpuWorkPtr Gpu::run(c10::Device device, About about, Body body, const LineOf& lineOf) {
  auto work = c10::make_intrusive<GpuWork>(rank_, std::move(about), device);
  {
    const Lock lock(mutex_);
    keepTo(device);
    queue(lineOf(), *work, {std::move(body)});
  }
  work->tell();
  return work;
}

GpuWorkPtr Gpu::collect(c10::Device device, About about, Body body) {
  const Lock lock(mutex_);
  keepTo(device);
  if (collected_) {
    collected_->work->add(about);
  } else {
    about.type = c10d::OpType::COALESCED;
    about.title = "tutti:coalesced";
    collected_ = {c10::make_intrusive<GpuWork>(rank_, std::move(about), device), {}};
  }
  collected_->bodies.push_back(std::move(body));
  return collected_->work;
}

GpuWorkPtr Gpu::flush() {
  std::optional<Collected> now;
  {
    const Lock lock(mutex_);
    now.swap(collected_);
    if (!now) return {};
    queue(lineOfAll(), *now->work, now->bodies);
  }
  now->work->tell();
  return now->work;
}

void Gpu::keepTo(c10::Device device) {
  TORCH_CHECK_VALUE(!device_ || *device_ == device, "tutti: this rank's tensors in the group ", group_, " are on ",
                    *device_, ", and one is on ", device, ": a rank has one GPU in a group");
  device_ = device;
}

// ---- Communicators -----------------------------------------------------------------------------------------------

Gpu::Line& Gpu::lineOfAll() {
  if (!all_.comm) open(all_, "all", rank_, size_);
  return all_;
}

Gpu::Line& Gpu::lineTo(int peer) {
  Line& line = pairs_[peer];
  const auto [low, high] = std::minmax(rank_, peer);
  if (!line.comm) open(line, c10::str("pair/", low, ":", high), rank_ == low ? 0 : 1, 2);
  return line;
}

// Once: what has failed left its traces in the Store.
void Gpu::open(Line& line, const std::string& name, int rank, int size) {
  if (line.broken) std::rethrow_exception(line.broken);
  try {
    line.stream = gpus().getStreamFromGlobalPool(*device_);
    line.handle = handleOf(*line.stream);
    line.comm = join(name, rank, size);
  } catch (...) {
    line.broken = std::current_exception();
    throw;
  }
}

std::exception_ptr Gpu::closed() const {
  const Lock lock(commsMutex_);
  return closed_;
}

// Whoever stops everything finds it in its place, and ends joining with it; or else the wait for the others.
std::shared_ptr<Communicator> Gpu::join(const std::string& name, int rank, int size) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>("gpu/" + name, store_);
  const milliseconds timeout(timeoutMs_);
  const Stopped stopped = [this] { return closed(); };
  const tuttiUniqueId id = size == 1 ? newId() : agreeOnId(*store, rank, size, timeout, stopped);
  const auto comm =
      std::make_shared<Communicator>(id, rank, size, timeout, c10::str(group_, " on GPUs, ", name), device_->str());
  add(comm);
  comm->awaitAll();
  return comm;
}

void Gpu::add(const std::shared_ptr<Communicator>& comm) {
  const Lock lock(commsMutex_);
  if (closed_) std::rethrow_exception(closed_);
  comms_.push_back(comm);
}

tuttiResult_t Gpu::state() const {
  const Lock lock(commsMutex_);
  for (const auto& comm : comms_)
    if (const tuttiResult_t result = comm->state(); result != tuttiSuccess) return result;
  return tuttiSuccess;
}

void Gpu::abort(const std::exception_ptr& why) {
  const Lock lock(commsMutex_);
  if (!closed_) closed_ = why;
  for (const auto& comm : comms_) comm->abort();
}

bool Gpu::drain(milliseconds time) const {
  std::vector<std::shared_ptr<Communicator>> comms;
  {
    const Lock lock(commsMutex_);
    comms = comms_;
  }
  const auto limit = steady_clock::now() + time;
  const auto idle = [](const auto& comm) {
    int answer = 1;
    tuttiCommIdle(comm->get(), &answer);
    return answer != 0;
  };
  for (milliseconds look(1); !std::all_of(comms.begin(), comms.end(), idle); std::this_thread::sleep_for(look))
    if (steady_clock::now() > limit) return false;
  return true;
}

// ---- Streams -----------------------------------------------------------------------------------------------------

void Gpu::queue(Line& line, GpuWork& work, const std::vector<Body>& bodies) {
  if (const auto why = closed()) std::rethrow_exception(why);
  const c10::Stream& own = *line.stream;
  const c10::Stream callers = gpus().getStream(*device_);
  const Tensors outputs = work.about().outputs;
  follow(own, callers);
  keep(work.about().inputs, own);
  keep(outputs, own);

  const c10::StreamGuard onOwn(own);
  const at::AutoDispatchBelowADInplaceOrView noAutograd;  // results are written, not computed
  Calls calls(line.comm->get(), line.handle);
  for (const Body& body : bodies) body(calls);
  calls.complete();
  for (const auto& output : outputs)
    if (output.is_sparse()) keep(output, callers);  // it has new memory, of this stream
  work.queued(own, line.comm);
}

}  // namespace tutti_torch
