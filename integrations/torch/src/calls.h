// tutti's calls on tensors without gaps (dense.h). They throw DistBackendError with tutti's text.
//
// On host memory each is done when it returns. On a GPU they are collected, and go out as one group: what is to happen
// after a call is given to after(), and whoever needs the results of some for the next ones says complete().
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "communicator.h"
#include "dense.h"
#include "types.h"

namespace tutti_torch {

// Elements of each rank's part, in their order; the parts lie one after the other.
using Counts = std::vector<int64_t>;

class Calls {
 public:
  // On host memory. `timeout` is each call's own. Calls have no effect on one another, so an object may be made for
  // each.
  Calls(tuttiComm_t comm, milliseconds timeout);
  // On a GPU, for what is queued on that stream, which is the current one of the thread as long as this lives.
  Calls(tuttiComm_t comm, tuttiStream_t stream);
  // What has not been completed is dropped.
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void allReduce(const at::Tensor& both, Operator& op);
  void reduce(const at::Tensor& both, Operator& op, int root);
  void broadcast(const at::Tensor& both, int root);
  void allGather(const at::Tensor& in, const at::Tensor& out);
  void allGather(const at::Tensor& in, const at::Tensor& out, const Counts& counts);
  // `all` is looked at on the root alone.
  void gather(const at::Tensor& in, const at::Tensor& all, int root);
  void scatter(const at::Tensor& all, const at::Tensor& out, int root);
  void reduceScatter(const at::Tensor& in, const at::Tensor& out, Operator& op);
  void reduceScatter(const at::Tensor& in, const at::Tensor& out, const Counts& counts, Operator& op);
  void allToAll(const at::Tensor& in, const at::Tensor& out);
  void allToAll(const at::Tensor& in, const Counts& inCounts, const at::Tensor& out, const Counts& outCounts);
  void send(const void* data, size_t bytes, int peer);
  void recv(void* data, size_t bytes, int peer);
  void send(const at::Tensor& in, int peer);
  void recv(const at::Tensor& out, int peer);
  void barrier();

  // The results of the calls so far go to where they belong.
  void writeBack(const Dense& out);
  void writeBack(const DenseList& out);
  // On a GPU, all calls so far are queued, and what comes after them is. Else nothing.
  void complete();

 private:
  // Where the next call goes.
  tuttiStream_t stream();
  // Until the calls are queued, no other tensor may be made where this one is.
  void* data(const at::Tensor& tensor);

  tuttiComm_t comm_;
  tuttiStream_t stream_ = nullptr;
  tuttiCallConfig_t config_ = TUTTI_CALL_CONFIG_INITIALIZER;
  bool collects_ = false, open_ = false;
  std::vector<at::Tensor> used_;
  std::vector<std::function<void()>> after_;
};

// What an operation does.
using Body = std::function<void(Calls&)>;

}  // namespace tutti_torch
