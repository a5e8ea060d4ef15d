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

void* dataOf(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

}  // namespace

Calls::Calls(tuttiComm_t comm, milliseconds timeout) : comm_(comm) { config_.timeoutMs = toMs(timeout); }

void Calls::allReduce(const at::Tensor& both, Operator& op) {
  void* const data = dataOf(both);
  check(tuttiAllReduceConfig(data, data, countOf(both, op.format()), op.format().type, op.on(comm_), comm_, nullptr,
                             &config_));
}

void Calls::reduce(const at::Tensor& both, Operator& op, int root) {
  void* const data = dataOf(both);
  check(tuttiReduceConfig(data, data, countOf(both, op.format()), op.format().type, op.on(comm_), root, comm_, nullptr,
                          &config_));
}

void Calls::broadcast(const at::Tensor& both, int root) {
  const Format format = formatOf(both);
  void* const data = dataOf(both);
  check(tuttiBroadcastConfig(data, data, countOf(both, format), format.type, root, comm_, nullptr, &config_));
}

void Calls::allGather(const at::Tensor& in, const at::Tensor& out) {
  const Format format = formatOf(in);
  check(tuttiAllGatherConfig(dataOf(in), dataOf(out), countOf(in, format), format.type, comm_, nullptr, &config_));
}

void Calls::allGather(const at::Tensor& in, const at::Tensor& out, const Counts& counts) {
  const Format format = formatOf(in);
  const Table table(counts, format);
  check(tuttiAllGatherVConfig(dataOf(in), dataOf(out), table.counts.data(), table.starts.data(), format.type, comm_,
                              nullptr, &config_));
}

void Calls::gather(const at::Tensor& in, const at::Tensor& all, int root) {
  const Format format = formatOf(in);
  check(tuttiGatherConfig(dataOf(in), dataOf(all), countOf(in, format), format.type, root, comm_, nullptr, &config_));
}

void Calls::scatter(const at::Tensor& all, const at::Tensor& out, int root) {
  const Format format = formatOf(out);
  check(
      tuttiScatterConfig(dataOf(all), dataOf(out), countOf(out, format), format.type, root, comm_, nullptr, &config_));
}

void Calls::reduceScatter(const at::Tensor& in, const at::Tensor& out, Operator& op) {
  check(tuttiReduceScatterConfig(dataOf(in), dataOf(out), countOf(out, op.format()), op.format().type, op.on(comm_),
                                 comm_, nullptr, &config_));
}

void Calls::reduceScatter(const at::Tensor& in, const at::Tensor& out, const Counts& counts, Operator& op) {
  const Table table(counts, op.format());
  check(tuttiReduceScatterVConfig(dataOf(in), dataOf(out), table.counts.data(), op.format().type, op.on(comm_), comm_,
                                  nullptr, &config_));
}

void Calls::allToAll(const at::Tensor& in, const at::Tensor& out) {
  const Format format = formatOf(in);
  int ranks = 1;
  check(tuttiCommCount(comm_, &ranks));
  check(tuttiAllToAllConfig(dataOf(in), dataOf(out), countOf(in, format) / static_cast<size_t>(ranks), format.type,
                            comm_, nullptr, &config_));
}

void Calls::allToAll(const at::Tensor& in, const Counts& inCounts, const at::Tensor& out, const Counts& outCounts) {
  const Format format = formatOf(in);
  const Table from(inCounts, format), to(outCounts, format);
  check(tuttiAllToAllVConfig(dataOf(in), from.counts.data(), from.starts.data(), dataOf(out), to.counts.data(),
                             to.starts.data(), format.type, comm_, nullptr, &config_));
}

void Calls::send(const void* data, size_t bytes, int peer) {
  check(tuttiSendConfig(data, bytes, tuttiUint8, peer, comm_, nullptr, &config_));
}

void Calls::recv(void* data, size_t bytes, int peer) {
  check(tuttiRecvConfig(data, bytes, tuttiUint8, peer, comm_, nullptr, &config_));
}

void Calls::barrier() { check(tuttiBarrierConfig(comm_, nullptr, &config_)); }

}  // namespace tutti_torch
