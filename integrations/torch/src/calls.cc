#include "calls.h"

#include "errors.h"

namespace tutti_torch {
namespace {

Format formatOf(const at::Tensor& tensor) { return formatToMove(tensor.scalar_type()); }

size_t countOf(const at::Tensor& tensor, const Format& format) {
  return static_cast<size_t>(tensor.numel()) * format.perElement;
}

// The tables of a v-variant.
struct Table {
  Table(const Counts& given, const Format& format) {
    for (const int64_t count : given) {
      starts.push_back(next_);
      counts.push_back(static_cast<size_t>(count) * format.perElement);
      next_ += counts.back();
    }
  }
  std::vector<size_t> counts, starts;

 private:
  size_t next_ = 0;
};

}  // namespace

Calls::Calls(tuttiComm_t comm, milliseconds timeout) : comm_(comm) { config_.timeoutMs = toMs(timeout); }

Calls::Calls(tuttiComm_t comm, tuttiStream_t stream) : comm_(comm), stream_(stream), collects_(true) {}

// After an exception the group is still open, and would take in what this thread calls next.
Calls::~Calls() {
  if (open_) tuttiGroupEnd();
}

tuttiStream_t Calls::stream() {
  if (collects_ && !open_) {
    check(tuttiGroupStart());
    open_ = true;
  }
  return stream_;
}

void Calls::complete() {
  if (!open_) return;
  open_ = false;
  check(tuttiGroupEnd());
  for (const auto& step : after_) step();
  after_.clear();
  used_.clear();
}

void Calls::writeBack(const Dense& out) {
  collects_ ? after_.push_back([out] { out.writeBack(); }) : out.writeBack();
}

void Calls::writeBack(const DenseList& out) {
  collects_ ? after_.push_back([out] { out.writeBack(); }) : out.writeBack();
}

void* Calls::data(const at::Tensor& tensor) {
  if (!tensor.defined()) return nullptr;
  if (collects_) used_.push_back(tensor);
  return tensor.data_ptr();
}

void Calls::allReduce(const at::Tensor& both, Operator& op) {
  void* const memory = data(both);
  check(tuttiAllReduceConfig(memory, memory, countOf(both, op.format()), op.format().type, op.on(comm_), comm_,
                             stream(), &config_));
}

void Calls::reduce(const at::Tensor& both, Operator& op, int root) {
  void* const memory = data(both);
  check(tuttiReduceConfig(memory, memory, countOf(both, op.format()), op.format().type, op.on(comm_), root, comm_,
                          stream(), &config_));
}

void Calls::broadcast(const at::Tensor& both, int root) {
  const Format format = formatOf(both);
  void* const memory = data(both);
  check(tuttiBroadcastConfig(memory, memory, countOf(both, format), format.type, root, comm_, stream(), &config_));
}

void Calls::allGather(const at::Tensor& in, const at::Tensor& out) {
  const Format format = formatOf(in);
  check(tuttiAllGatherConfig(data(in), data(out), countOf(in, format), format.type, comm_, stream(), &config_));
}

void Calls::allGather(const at::Tensor& in, const at::Tensor& out, const Counts& counts) {
  const Format format = formatOf(in);
  const Table table(counts, format);
  check(tuttiAllGatherVConfig(data(in), data(out), table.counts.data(), table.starts.data(), format.type, comm_,
                              stream(), &config_));
}

void Calls::gather(const at::Tensor& in, const at::Tensor& all, int root) {
  const Format format = formatOf(in);
  check(tuttiGatherConfig(data(in), data(all), countOf(in, format), format.type, root, comm_, stream(), &config_));
}

void Calls::scatter(const at::Tensor& all, const at::Tensor& out, int root) {
  const Format format = formatOf(out);
  check(tuttiScatterConfig(data(all), data(out), countOf(out, format), format.type, root, comm_, stream(), &config_));
}

void Calls::reduceScatter(const at::Tensor& in, const at::Tensor& out, Operator& op) {
  check(tuttiReduceScatterConfig(data(in), data(out), countOf(out, op.format()), op.format().type, op.on(comm_), comm_,
                                 stream(), &config_));
}

void Calls::reduceScatter(const at::Tensor& in, const at::Tensor& out, const Counts& counts, Operator& op) {
  const Table table(counts, op.format());
  check(tuttiReduceScatterVConfig(data(in), data(out), table.counts.data(), op.format().type, op.on(comm_), comm_,
                                  stream(), &config_));
}

void Calls::allToAll(const at::Tensor& in, const at::Tensor& out) {
  const Format format = formatOf(in);
  int ranks = 1;
  check(tuttiCommCount(comm_, &ranks));
  check(tuttiAllToAllConfig(data(in), data(out), countOf(in, format) / static_cast<size_t>(ranks), format.type, comm_,
                            stream(), &config_));
}

void Calls::allToAll(const at::Tensor& in, const Counts& inCounts, const at::Tensor& out, const Counts& outCounts) {
  const Format format = formatOf(in);
  const Table from(inCounts, format), to(outCounts, format);
  check(tuttiAllToAllVConfig(data(in), from.counts.data(), from.starts.data(), data(out), to.counts.data(),
                             to.starts.data(), format.type, comm_, stream(), &config_));
}

void Calls::send(const void* data, size_t bytes, int peer) {
  check(tuttiSendConfig(data, bytes, tuttiUint8, peer, comm_, stream(), &config_));
}

void Calls::recv(void* data, size_t bytes, int peer) {
  check(tuttiRecvConfig(data, bytes, tuttiUint8, peer, comm_, stream(), &config_));
}

void Calls::send(const at::Tensor& in, int peer) { send(data(in), in.nbytes(), peer); }

void Calls::recv(const at::Tensor& out, int peer) { recv(data(out), out.nbytes(), peer); }

void Calls::barrier() { check(tuttiBarrierConfig(comm_, stream(), &config_)); }

}  // namespace tutti_torch
