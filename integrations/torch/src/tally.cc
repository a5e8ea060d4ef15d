#include "tally.h"

namespace tutti_torch {
namespace {

using c10d::OpType;

const char* nameOf(OpType type) {
  if (type == kCoalescedReduceScatter) return "reduce_scatter";
  switch (type) {
    case OpType::BROADCAST:
      return "broadcast";
    case OpType::REDUCE:
      return "reduce";
    case OpType::ALLGATHER:
    case OpType::_ALLGATHER_BASE:
    case OpType::ALLGATHER_COALESCED:
    case OpType::COALESCED:  // of all-gathers
      return "all_gather";
    case OpType::GATHER:
      return "gather";
    case OpType::SCATTER:
      return "scatter";
    case OpType::REDUCE_SCATTER:
    case OpType::_REDUCE_SCATTER_BASE:
      return "reduce_scatter";
    case OpType::ALLTOALL:
    case OpType::ALLTOALL_BASE:
      return "all_to_all";
    case OpType::SEND:
      return "send";
    case OpType::RECV:
    case OpType::RECVANYSOURCE:
      return "recv";
    case OpType::BARRIER:
      return "barrier";
    default:
      return "all_reduce";
  }
}

// Of the side that has the whole message; of a gather and a scatter that of this rank's own part.
const Tensors& countedOf(const About& about) {
  const std::string name = nameOf(about.type);
  return name == "all_gather" || name == "scatter" || name == "recv" ? about.outputs : about.inputs;
}

uint64_t bytesOf(const Tensors& tensors) {
  uint64_t bytes = 0;
  for (const auto& tensor : tensors)
    if (tensor.layout() == at::kStrided) bytes += tensor.nbytes();
  return bytes;
}

}  // namespace

void Tally::called(const About& about) {
  const uint64_t bytes = bytesOf(countedOf(about));
  const std::lock_guard lock(mutex_);
  Count& count = counts_[nameOf(about.type)];
  ++count.operations, count.bytes += bytes;
}

void Tally::waited(OpType type, std::chrono::steady_clock::time_point since) {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
  const std::lock_guard lock(mutex_);
  counts_[nameOf(type)].waitSeconds += time.count();
}

std::map<std::string, Count> Tally::read() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace tutti_torch
