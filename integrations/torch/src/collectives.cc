// The collectives of Backend: what each does with its tensors.
#include <ATen/ATen.h>

#include "backend.h"
#include "checks.h"
#include "dense.h"
#include "sparse.h"

namespace tutti_torch {
namespace {

using c10d::OpType;

// Since 2.8 or so options say whether the caller goes on at once.
template <class Options>
bool isAsync(const Options& options) {
  if constexpr (requires { options.asyncOp; }) return options.asyncOp;
  return true;
}

template <class Options>
About about(OpType type, const char* title, Tensors inputs, Tensors outputs, const Options& options) {
  return {type, title, std::move(inputs), std::move(outputs), options.timeout, isAsync(options)};
}

std::shared_ptr<Operator> operatorOf(const c10d::ReduceOp& op, const at::Tensor& tensor) {
  return std::make_shared<Operator>(op, tensor.scalar_type());
}

void gatherInto(Calls& calls, const at::Tensor& input, const Tensors& outputs) {
  const Dense in(input, Use::kRead);
  const DenseList out(outputs, Use::kWrite);
  out.isEven() ? calls.allGather(in.memory(), out.memory()) : calls.allGather(in.memory(), out.memory(), out.counts());
  calls.writeBack(out);
}

void gatherInto(Calls& calls, const at::Tensor& input, const at::Tensor& output) {
  const Dense in(input, Use::kRead), out(output, Use::kWrite);
  calls.allGather(in.memory(), out.memory());
  calls.writeBack(out);
}

void reduceScatterInto(Calls& calls, const at::Tensor& input, const at::Tensor& output, Operator& op) {
  const Dense in(input, Use::kRead), out(output, Use::kWrite);
  calls.reduceScatter(in.memory(), out.memory(), op);
  calls.writeBack(out);
}

void allReduceIn(Calls& calls, const at::Tensor& tensor, Operator& op) {
  const Dense both(tensor, Use::kBoth);
  calls.allReduce(both.memory(), op);
  calls.writeBack(both);
}

}  // namespace

WorkResult Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor tensor = only("broadcast", tensors);
  checkStrided("broadcast", tensor);
  checkRank("broadcast", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  const Use use = root == rank_ ? Use::kRead : Use::kWrite;
  return issue(about(OpType::BROADCAST, "tutti:broadcast", tensors, tensors, options), [=](Calls& calls) {
    const Dense both(tensor, use);
    calls.broadcast(both.memory(), root);
    if (use == Use::kWrite) calls.writeBack(both);
  });
}

WorkResult Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = only("allreduce", tensors);
  if (tensor.layout() == at::kSparse) return allreduce_sparse(tensors, options);
  checkStrided("allreduce", tensor);
  return issue(about(OpType::ALLREDUCE, "tutti:all_reduce", tensors, tensors, options),
               [tensor, op = operatorOf(options.reduceOp, tensor)](Calls& calls) { allReduceIn(calls, tensor, *op); });
}

WorkResult Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = only("allreduce_sparse", tensors);
  TORCH_CHECK_VALUE(tensor.layout() == at::kSparse, "tutti: allreduce_sparse: the tensor is not sparse");
  TORCH_CHECK_VALUE(options.reduceOp == c10d::ReduceOp::SUM,
                    "tutti: unsupported reduction operation: allreduce of sparse tensors only works with ReduceOp.SUM");
  const int ranks = size_;
  return issue(about(OpType::_ALLREDUCE_SPARSE, "tutti:sparse_all_reduce", tensors, tensors, options),
               [=](Calls& calls) { sparseAllReduce(calls, tensor, ranks); });
}

WorkResult Backend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK_VALUE(!tensors.empty(), "tutti: allreduce_coalesced: requires non-empty tensor list");
  std::vector<std::shared_ptr<Operator>> ops;
  for (const auto& tensor : tensors) {
    checkStrided("allreduce_coalesced", tensor);
    ops.push_back(operatorOf(options.reduceOp, tensor));
  }
  return issue(about(OpType::ALLREDUCE_COALESCED, "tutti:all_reduce", tensors, tensors, options),
               [tensors, ops](Calls& calls) {
                 for (size_t i = 0; i < tensors.size(); ++i) allReduceIn(calls, tensors[i], *ops[i]);
               });
}

WorkResult Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor tensor = only("reduce", tensors);
  checkStrided("reduce", tensor);
  checkRank("reduce", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  const bool receives = root == rank_;
  return issue(about(OpType::REDUCE, "tutti:reduce", tensors, tensors, options),
               [=, op = operatorOf(options.reduceOp, tensor)](Calls& calls) {
                 const Dense both(tensor, Use::kBoth);
                 calls.reduce(both.memory(), *op, root);
                 if (receives) calls.writeBack(both);
               });
}

WorkResult Backend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const at::Tensor input = only("allgather", inputs);
  const Tensors outs = onlyList("allgather", outputs, size_);
  for (const auto& out : outs) checkTypes("allgather", input, out);
  TORCH_CHECK_VALUE(outs[static_cast<size_t>(rank_)].numel() == input.numel(), "tutti: allgather: this rank has ",
                    input.numel(), " elements, its place in the output has ", outs[static_cast<size_t>(rank_)].numel());
  return issue(about(OpType::ALLGATHER, "tutti:all_gather", inputs, outs, options),
               [=](Calls& calls) { gatherInto(calls, input, outs); });
}

WorkResult Backend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  checkParts("_allgather_base", output, input, size_);
  return issue(about(OpType::_ALLGATHER_BASE, "tutti:_all_gather_base", {input}, {output}, options),
               [in = input, out = output](Calls& calls) { gatherInto(calls, in, out); });
}

WorkResult Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(!inputs.empty() && static_cast<int>(outputs.size()) == size_,
                    "tutti: allgather_coalesced: needs tensors, and ", size_, " lists for them; got ", outputs.size());
  TensorLists lists(inputs.size());
  Tensors outs;
  for (const Tensors& ofRank : outputs) {
    checkSame("allgather_coalesced", ofRank, inputs);
    for (size_t i = 0; i < inputs.size(); ++i) lists[i].push_back(ofRank[i]), outs.push_back(ofRank[i]);
  }
  return issue(about(OpType::ALLGATHER_COALESCED, "tutti:all_gather", inputs, outs, options),
               [inputs, lists](Calls& calls) {
                 for (size_t i = 0; i < inputs.size(); ++i) gatherInto(calls, inputs[i], lists[i]);
               });
}

WorkResult Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                    const c10d::AllgatherOptions& options) {
  checkSame("allgather_into_tensor_coalesced", outputs, inputs);
  for (size_t i = 0; i < inputs.size(); ++i)
    checkParts("allgather_into_tensor_coalesced", outputs[i], inputs[i], size_);
  return issue(about(OpType::COALESCED, "tutti:all_gather_into_tensor_coalesced", inputs, outputs, options),
               [outputs, inputs](Calls& calls) {
                 for (size_t i = 0; i < inputs.size(); ++i) gatherInto(calls, inputs[i], outputs[i]);
               });
}

WorkResult Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const at::Tensor input = only("gather", inputs);
  checkRank("gather", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK_VALUE(rank_ == root || outputs.empty(), "tutti: gather: requires empty output on non-root");
  const Tensors outs = rank_ == root ? onlyList("gather", outputs, size_) : Tensors();
  for (const auto& out : outs) {
    checkTypes("gather", input, out);
    TORCH_CHECK_VALUE(out.numel() == input.numel(), "tutti: gather: an output has ", out.numel(),
                      " elements, the input ", input.numel());
  }
  return issue(about(OpType::GATHER, "tutti:gather", inputs, outs, options), [=](Calls& calls) {
    const Dense in(input, Use::kRead);
    if (outs.empty()) return calls.gather(in.memory(), {}, root);
    const DenseList out(outs, Use::kWrite);
    calls.gather(in.memory(), out.memory(), root);
    calls.writeBack(out);
  });
}

WorkResult Backend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) {
  const at::Tensor output = only("scatter", outputs);
  checkRank("scatter", options.rootRank);
  const int root = static_cast<int>(options.rootRank);
  TORCH_CHECK_VALUE(rank_ == root || inputs.empty(), "tutti: scatter: requires empty input on non-root");
  const Tensors ins = rank_ == root ? onlyList("scatter", inputs, size_) : Tensors();
  for (const auto& in : ins) {
    checkTypes("scatter", in, output);
    TORCH_CHECK_VALUE(in.numel() == output.numel(), "tutti: scatter: an input has ", in.numel(),
                      " elements, the output ", output.numel());
  }
  return issue(about(OpType::SCATTER, "tutti:scatter", ins, outputs, options), [=](Calls& calls) {
    const Dense out(output, Use::kWrite);
    calls.scatter(ins.empty() ? at::Tensor() : DenseList(ins, Use::kRead).memory(), out.memory(), root);
    calls.writeBack(out);
  });
}

WorkResult Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  const at::Tensor output = only("reduce_scatter", outputs);
  const Tensors ins = onlyList("reduce_scatter", inputs, size_);
  for (const auto& in : ins) checkTypes("reduce_scatter", in, output);
  TORCH_CHECK_VALUE(ins[static_cast<size_t>(rank_)].numel() == output.numel(), "tutti: reduce_scatter: the output has ",
                    output.numel(), " elements, this rank's input ", ins[static_cast<size_t>(rank_)].numel());
  return issue(about(OpType::REDUCE_SCATTER, "tutti:reduce_scatter", ins, outputs, options),
               [ins, output, op = operatorOf(options.reduceOp, output)](Calls& calls) {
                 const DenseList in(ins, Use::kRead);
                 const Dense out(output, Use::kWrite);
                 in.isEven() ? calls.reduceScatter(in.memory(), out.memory(), *op)
                             : calls.reduceScatter(in.memory(), out.memory(), in.counts(), *op);
                 calls.writeBack(out);
               });
}

WorkResult Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                         const c10d::ReduceScatterOptions& options) {
  checkParts("_reduce_scatter_base", input, output, size_);
  return issue(about(OpType::_REDUCE_SCATTER_BASE, "tutti:_reduce_scatter_base", {input}, {output}, options),
               [in = input, out = output, op = operatorOf(options.reduceOp, output)](Calls& calls) {
                 reduceScatterInto(calls, in, out, *op);
               });
}

WorkResult Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                    const c10d::ReduceScatterOptions& options) {
  checkSame("reduce_scatter_tensor_coalesced", outputs, inputs);
  std::vector<std::shared_ptr<Operator>> ops;
  for (size_t i = 0; i < inputs.size(); ++i) {
    checkParts("reduce_scatter_tensor_coalesced", inputs[i], outputs[i], size_);
    ops.push_back(operatorOf(options.reduceOp, outputs[i]));
  }
  return issue(about(kCoalescedReduceScatter, "tutti:reduce_scatter_tensor_coalesced", inputs, outputs, options),
               [outputs, inputs, ops](Calls& calls) {
                 for (size_t i = 0; i < inputs.size(); ++i) reduceScatterInto(calls, inputs[i], outputs[i], *ops[i]);
               });
}

WorkResult Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
                                  std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& options) {
  checkTypes("alltoall_base", output, input);
  const Counts inCounts = splitsOf("alltoall_base, input", inputSplits, input, size_);
  const Counts outCounts = splitsOf("alltoall_base, output", outputSplits, output, size_);
  const bool even = inputSplits.empty() && outputSplits.empty();
  TORCH_CHECK_VALUE(!even || input.numel() == output.numel(), "tutti: alltoall_base: ", input.numel(),
                    " elements go in, and ", output.numel(), " come out");
  return issue(about(OpType::ALLTOALL_BASE, "tutti:all_to_all", {input}, {output}, options),
               [=, given = input, taken = output](Calls& calls) {
                 const Dense in(given, Use::kRead), out(taken, Use::kWrite);
                 even ? calls.allToAll(in.memory(), out.memory())
                      : calls.allToAll(in.memory(), inCounts, out.memory(), outCounts);
                 calls.writeBack(out);
               });
}

WorkResult Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  const Tensors ins = onlyList("alltoall", {inputs}, size_), outs = onlyList("alltoall", {outputs}, size_);
  for (const auto& tensor : ins) checkTypes("alltoall", tensor, outs.front());
  for (const auto& tensor : outs) checkTypes("alltoall", tensor, outs.front());
  return issue(about(OpType::ALLTOALL, "tutti:all_to_all", ins, outs, options), [=](Calls& calls) {
    const DenseList in(ins, Use::kRead), out(outs, Use::kWrite);
    calls.allToAll(in.memory(), in.counts(), out.memory(), out.counts());
    calls.writeBack(out);
  });
}

// On the GPU that the caller names; else on host memory.
WorkResult Backend::barrier(const c10d::BarrierOptions& options) {
  About barrier = about(OpType::BARRIER, "tutti:barrier", {}, {}, options);
  const Body body = [](Calls& calls) { calls.barrier(); };
  if (options.device_ids.empty() || !Gpu::isThere()) return issue(std::move(barrier), body);
  const c10::Device gpu(c10::kCUDA, static_cast<c10::DeviceIndex>(options.device_ids.front()));
  return issueOn(gpu, std::move(barrier), body);
}

}  // namespace tutti_torch
