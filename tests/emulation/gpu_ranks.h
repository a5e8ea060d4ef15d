// Ranks of one process that share the emulated GPU: a communicator each, driven from one thread in groups.
#pragma once
#include <cuda_runtime.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "faults/support/operation.h"
#include "support/api_ranks.h"
#include "support/patience.h"
#include "support/sanitized.h"
#include "support/variables.h"

namespace tutti::test {

// The ways in which GPUs run operations: a protocol of the kernels, or streams that wait, for what only moves data or
// for everything. Ranks of tests are many in one process.
inline std::vector<Setting> settingsOf(const std::string& way) {
  if (way != "copy" && way != "stream") return {{"TUTTI_PROTOCOL", way}, {"TUTTI_CHANNELS", "2"}};
  return {{"TUTTI_ENGINE", way}, {"CUDA_DEVICE_MAX_CONNECTIONS", "32"}, {"TUTTI_CHANNELS", "2"}};
}

inline std::vector<Setting> operator+(std::vector<Setting> all, const std::vector<Setting>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Runs body() between the start and the end of a group.
template <class Body>
void inGroup(Body body) {
  CHECK_TUTTI(tuttiGroupStart());
  try {
    body();
  } catch (...) {
    tuttiGroupEnd();
    throw;
  }
  CHECK_TUTTI(tuttiGroupEnd());
}

// An operation of every kind for each count: of all types in turn, from all roots, in place and out of place.
inline std::vector<faults::Operation> everyKind(int ranks, const std::vector<size_t>& counts) {
  std::vector<faults::Operation> all;
  for (int kind = 0; kind < faults::kKinds; ++kind)
    for (const size_t count : counts) {
      faults::Operation operation;
      operation.kind = static_cast<faults::Kind>(kind);
      operation.count = count;
      operation.salt = all.size() + 2;
      operation.root = static_cast<int>(operation.salt) % ranks;
      operation.inPlace = operation.salt % 2 == 0;
      operation.type = faults::kTypes[operation.salt % std::size(faults::kTypes)];
      all.push_back(operation);
    }
  return all;
}

// `settings`: TUTTI_ALGO, TUTTI_PROTOCOL, ….
class GpuRanks {
 public:
  explicit GpuRanks(int ranks, std::vector<Setting> settings = {})
      : GpuRanks(std::vector<int>(static_cast<size_t>(ranks), 0), std::move(settings)) {}
  // The rank's GPUs.
  explicit GpuRanks(const std::vector<int>& devices, std::vector<Setting> settings)
      : devices_(devices), comms_(devices.size()) {
    settings.insert(settings.begin(), {{"TUTTI_GPU_BUFFER_MIB", "1"},
                                       {"TUTTI_OPERATION_TIMEOUT_MS", std::to_string(longWait().count())}});
    const Settings set(std::move(settings));
    CHECK_TUTTI(tuttiCommInitAll(comms_.data(), size(), devices.data()));
  }
  ~GpuRanks() {
    for (const tuttiComm_t comm : comms_) tuttiCommDestroy(comm);
  }
  GpuRanks(const GpuRanks&) = delete;
  GpuRanks& operator=(const GpuRanks&) = delete;

  int size() const { return static_cast<int>(comms_.size()); }
  tuttiComm_t operator[](int rank) const { return comms_[static_cast<size_t>(rank)]; }

  // call(rank) for each, as one group; then waits for the stream.
  template <class Call>
  void together(Call call, cudaStream_t stream = nullptr) const {
    inGroup([&] {
      for (int rank = 0; rank < size(); ++rank) check(call(rank), "a call of the group", (*this)[rank]);
    });
    finish(stream);
  }

  // Waits for the stream. Throws when a communicator has failed.
  void finish(cudaStream_t stream = nullptr) const {
    for (const int device : devices_)  // each has a legacy default stream of its own
      if (cudaSetDevice(device) != cudaSuccess || cudaStreamSynchronize(stream) != cudaSuccess)
        throw std::runtime_error("the stream failed");
    for (int rank = 0; rank < size(); ++rank) expectHealthy(rank);
  }

  // Runs the operation on every rank. Returns what is wrong.
  std::string run(const faults::Operation& operation) const {
    std::vector<std::unique_ptr<faults::Part>> parts;
    for (int rank = 0; rank < size(); ++rank) parts.push_back(std::make_unique<faults::Part>(operation, rank, size()));
    together([&](int rank) { return parts[static_cast<size_t>(rank)]->issue((*this)[rank], nullptr); });
    for (int rank = 0; rank < size(); ++rank)
      if (const std::string wrong = parts[static_cast<size_t>(rank)]->check(); !wrong.empty())
        return operation.describe() + ", rank " + std::to_string(rank) + ": " + wrong;
    return "";
  }

 private:
  void expectHealthy(int rank) const {
    tuttiResult_t state = tuttiSuccess;
    CHECK_TUTTI(tuttiCommGetAsyncError((*this)[rank], &state));
    check(state, "the communicator afterwards", (*this)[rank]);
  }
  std::vector<int> devices_;
  std::vector<tuttiComm_t> comms_;
};

}  // namespace tutti::test
