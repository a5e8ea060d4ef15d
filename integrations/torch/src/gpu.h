// The part of a group that is on this rank's GPU, made when the first tensor there comes.
//
// By PyTorch's interface for streams and events of any device, so no header of CUDA is needed: where PyTorch is a build
// for CPUs there are no tensors that would come here.
//
// Operations go onto a stream of the group's own, which first waits for all that the caller's current stream has been
// given (it may compute the tensors). They have not run when the call returns: work.h says how to wait for them. Any
// thread may call; what cannot be queued throws. Tensors may be freed at any time: their memory is not used again
// before the operation has ended.
#pragma once
#include <c10/core/Stream.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "calls.h"
#include "communicator.h"
#include "gpu_work.h"

namespace tutti_torch {

class Gpu {
 public:
  // `store` is the group's own. `timeout` is of joining, and of all operations.
  Gpu(c10::intrusive_ptr<c10d::Store> store, int rank, int size, milliseconds timeout, std::string group);

  // Whether this PyTorch can have tensors on GPUs.
  static bool isThere() { return c10::impl::hasDeviceGuardImpl(c10::kCUDA); }

  // The first blocks until all ranks have come with a tensor on their GPU; all later ones of this rank are on the same.
  GpuWorkPtr issue(c10::Device device, About about, Body body);
  // Runs at the next flush(), in one group with what else is collected until then, which is one work.
  GpuWorkPtr collect(c10::Device device, About about, Body body);
  // Null: nothing was collected.
  GpuWorkPtr flush();
  // Messages between two ranks match in the order of the calls, whatever their tags. The first blocks until the other
  // rank has one for this. To the body the other rank is 0 where it is the lower one of the two, else 1.
  GpuWorkPtr message(c10::Device device, About about, int peer, Body body);

  void setTimeout(milliseconds timeout) { timeoutMs_ = timeout.count(); }
  // tuttiSuccess, or what stopped one of the communicators.
  tuttiResult_t state() const;
  // Fails everything, now and later. Does not wait for calls that are inside.
  void abort(const std::exception_ptr& why);
  // Waits until nothing is left to do, or the time is over: then false.
  bool drain(milliseconds time) const;

 private:
  // A communicator, and the stream on which its operations are.
  struct Line {
    std::shared_ptr<Communicator> comm;
    std::optional<c10::Stream> stream;
    tuttiStream_t handle = nullptr;
    std::exception_ptr broken;  // why there is none
  };
  struct Collected {
    GpuWorkPtr work;
    std::vector<Body> bodies;
  };

  using LineOf = std::function<Line&()>;

  GpuWorkPtr run(c10::Device device, About about, Body body, const LineOf& lineOf);
  void keepTo(c10::Device device);
  Line& lineOfAll();
  Line& lineTo(int peer);
  void open(Line& line, const std::string& name, int rank, int size);
  std::shared_ptr<Communicator> join(const std::string& name, int rank, int size);
  void add(const std::shared_ptr<Communicator>& comm);
  std::exception_ptr closed() const;
  void queue(Line& line, GpuWork& work, const std::vector<Body>& bodies);

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_, size_;
  const std::string group_;
  std::atomic<int64_t> timeoutMs_;

  std::mutex mutex_;  // guards what follows, and the order of calls; another is taken under it
  std::optional<c10::Device> device_;
  std::optional<Collected> collected_;
  Line all_;
  std::map<int, Line> pairs_;

  mutable std::mutex commsMutex_;  // guards what follows
  std::vector<std::shared_ptr<Communicator>> comms_;
  std::exception_ptr closed_;
};

}  // namespace tutti_torch
