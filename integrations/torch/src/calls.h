// tutti's calls on tensors without gaps (dense.h), each done when it returns. They throw DistBackendError with tutti's
// text.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "communicator.h"
#include "types.h"

namespace tutti_torch {

// Elements of each rank's part, in their order; the parts lie one after the other.
using Counts = std::vector<int64_t>;

class Calls {
 public:
  // `timeout` is each call's own. Calls have no effect on one another, so an object may be made for each.
  Calls(tuttiComm_t comm, milliseconds timeout);

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
  void barrier();

 private:
  tuttiComm_t comm_;
  tuttiCallConfig_t config_ = TUTTI_CALL_CONFIG_INITIALIZER;
};

}  // namespace tutti_torch
