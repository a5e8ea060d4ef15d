// torch.distributed's backend "tutti": c10d::Backend on host memory, and on GPUs (gpu.h).
//
// Any thread may call. On host memory operations run in the order of the calls, on a thread of the group (queue.h), or
// on the caller's where that would wait at once; messages beside them (messages.h). Tensors are kept until their
// operation has ended. What fails throws DistBackendError from wait(), with tutti's text, which names the rank; after
// that the group is to be destroyed. Methods have the names that every version of PyTorch since 2.0 forwards to.
#pragma once
#include <unistd.h>

#include <memory>
#include <mutex>
#include <optional>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "calls.h"
#include "checks.h"
#include "communicator.h"
#include "gpu.h"
#include "groups.h"
#include "messages.h"
#include "queue.h"
#include "tally.h"

namespace tutti_torch {

using WorkResult = c10::intrusive_ptr<c10d::Work>;
class Backend : public c10d::Backend {
 public:
  // Blocks until all ranks have come, or throws DistBackendError naming those who have not within `timeout`, which also
  // is the limit of each operation. `store` is the group's own. `group` is its name, for error texts.
  Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, milliseconds timeout, std::string group);
  ~Backend() override;

  const std::string getBackendName() const override { return "tutti"; }
  c10::intrusive_ptr<Options> getBackendOptions();  // of c10d::Backend since 2.7 or so
  void setTimeout(milliseconds timeout);

  WorkResult broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkResult allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkResult allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkResult allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkResult reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkResult allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkResult _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkResult allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkResult allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions& options) override;
  WorkResult gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkResult scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkResult reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkResult _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& options) override;
  WorkResult reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                             const c10d::ReduceScatterOptions& options) override;
  WorkResult alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& outputSplits,
                           std::vector<int64_t>& inputSplits, const c10d::AllToAllOptions& options) override;
  WorkResult alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkResult barrier(const c10d::BarrierOptions& options) override;

  WorkResult send(Tensors& tensors, int to, int tag) override;
  WorkResult recv(Tensors& tensors, int from, int tag) override;
  WorkResult recvAnysource(Tensors& tensors, int tag) override;

  // Over the Store: rank 0 waits for all others, then they for it. Throws on every rank that has come, and names the
  // first that has not, or with `waitAllRanks` all of them.
  void monitoredBarrier(const c10d::BarrierOptions& options, bool waitAllRanks) override;

  // What is called between the two is one work: endCoalescing's. On host memory calls run as ever; on a GPU they go out
  // together at the end, all or none of them on one.
  bool supportsCoalescing() const { return Gpu::isThere(); }  // of c10d::Backend since 2.4 or so
  void startCoalescing();
  WorkResult endCoalescing();

  void setSequenceNumberForGroup() override {}  // of the ranks of a group it is equal from the beginning
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

  // What was done and is used, as flat numbers, by the names that the package tutti has for them. Any thread.
  GroupNumbers tell() const;

  // Of the ranks of this group that are listed; null on the others. All that are listed call, with one Store.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options);
  c10d::ErrorType getError();
  // Fails what runs and all that comes later, on every rank.
  void abort();
  // Gives what runs a little time to end; then leaves.
  void shutdown();

 private:
  // Bounded: what cannot end is aborted.
  void leave() noexcept;
  // An operation: what it is, and what it does.
  WorkResult issue(About about, Body body);
  WorkResult issueOn(c10::Device gpu, About about, Body body);
  WorkPtr begin(About about, bool message);
  void refuseInChild(const About& about) const;
  void announce(About& about, bool message);
  void record(const About& about, bool message) const;
  WorkResult message(About about, int peer, int tag);
  bool announceOn(About& about, bool message);
  WorkResult messageOn(c10::Device gpu, About about, int peer);
  milliseconds effective(milliseconds asked) const;
  void checkRank(const char* call, int64_t rank) const;
  void stop(const std::exception_ptr& why);
  bool inChild() const { return getpid() != process_; }
  std::string missingAt(const std::string& round, milliseconds timeout, bool all);
  std::string verdictOn(const std::string& round, milliseconds timeout, bool all);

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string group_;
  const pid_t process_ = getpid();
  std::atomic<int64_t> timeoutMs_;
  std::atomic<uint64_t> sequence_{0}, messages_{0}, barriers_{0}, splits_{0};
  std::shared_ptr<Communicator> comm_;
  const std::shared_ptr<Tally> tally_ = std::make_shared<Tally>();
  std::unique_ptr<Queue> queue_;
  std::shared_ptr<Messages> sent_;
  std::unique_ptr<Gpu> gpu_;

  std::mutex mutex_;  // guards what follows, and the order of calls
  std::optional<std::vector<WorkPtr>> coalesced_;
  std::exception_ptr stopped_;
};

}  // namespace tutti_torch
