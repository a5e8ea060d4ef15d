// Ranks whose GPUs do not reach each other's memory: on different hosts, as far as they are told. Their links go
// through host memory, or over a network that reaches that of the GPUs.
#pragma once
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulation/gpu_ranks.h"
#include "support/patience.h"

namespace tutti::test {

using faults::Kind;
using faults::Operation;
using faults::Part;

// A rank a thread, each with a stream of its own; TUTTI_HOST_ID is read when a rank joins, one after the other.
class FarRanks {
 public:
  explicit FarRanks(int ranks, const std::vector<Setting>& more = {}) : comms_(static_cast<size_t>(ranks)) {
    const Settings set(std::vector<Setting>{{"TUTTI_GPU_BUFFER_MIB", "1"},
                                            {"TUTTI_OPERATION_TIMEOUT_MS", std::to_string(longWait().count())},
                                            {"TUTTI_CHANNELS", "2"}} +
                       more);
    tuttiUniqueId id;
    CHECK_TUTTI(tuttiGetUniqueId(&id));
    tuttiConfig_t config = testConfig();
    config.device = "cuda:0";
    config.nonBlocking = 1;
    for (int rank = 0; rank < ranks; ++rank) {
      const Settings host({{"TUTTI_HOST_ID", "host " + std::to_string(rank / 2)}});
      const auto result = tuttiCommInitRankConfig(&comms_[static_cast<size_t>(rank)], ranks, id, rank, &config);
      if (result != tuttiInProgress) check(result, "joining");
    }
    for (const tuttiComm_t comm : comms_) await(comm);
  }
  ~FarRanks() {
    for (const tuttiComm_t comm : comms_) tuttiCommDestroy(comm);
  }
  FarRanks(const FarRanks&) = delete;
  FarRanks& operator=(const FarRanks&) = delete;

  std::string run(const Operation& operation) const {
    const int size = static_cast<int>(comms_.size());
    std::vector<std::unique_ptr<Part>> parts;
    for (int rank = 0; rank < size; ++rank) parts.push_back(std::make_unique<Part>(operation, rank, size));
    CHECK_TUTTI(tuttiGroupStart());
    for (size_t rank = 0; rank < comms_.size(); ++rank) check(parts[rank]->issue(comms_[rank], nullptr), "a call");
    CHECK_TUTTI(tuttiGroupEnd());
    if (cudaStreamSynchronize(nullptr) != cudaSuccess) return "the stream failed";
    for (size_t rank = 0; rank < comms_.size(); ++rank) {
      await(comms_[rank]);
      if (const std::string wrong = parts[rank]->check(); !wrong.empty())
        return operation.describe() + ", rank " + std::to_string(rank) + ": " + wrong;
    }
    return "";
  }

  std::string transports() const {
    tuttiCommStats_t stats{};
    stats.size = sizeof stats;
    CHECK_TUTTI(tuttiCommGetStats(comms_.front(), &stats));
    return stats.lastTransports;
  }

 private:
  static void await(tuttiComm_t comm) {
    tuttiResult_t state = tuttiInProgress;
    while (state == tuttiInProgress) {
      CHECK_TUTTI(tuttiCommGetAsyncError(comm, &state));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    check(state, "the communicator", comm);
  }
  std::vector<tuttiComm_t> comms_;
};

// Nothing, or what came out wrong of one of all collectives of several sizes.
inline std::string runAll(const FarRanks& ranks, const std::vector<size_t>& counts) {
  uint64_t salt = 1;
  for (int kind = 0; kind < faults::kKinds; ++kind)
    for (const size_t count : counts) {
      Operation operation;
      operation.kind = static_cast<Kind>(kind);
      operation.count = count;
      operation.salt = ++salt;
      operation.root = static_cast<int>(salt % 4);
      if (std::string wrong = ranks.run(operation); !wrong.empty()) return wrong;
    }
  return "";
}

}  // namespace tutti::test
