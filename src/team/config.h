// What the environment and the caller may set for one communicator; resolved once, when it is made. Where both do, the
// environment wins: it is what an operator has in hand.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "link/registry.h"
#include "link/transport_settings.h"
#include "plan/profile.h"
#include "plan/protocols.h"
#include "schedule/rules.h"

namespace tutti::comm {

// TUTTI_ENGINE: what runs operations on GPUs (gpu/engines.h).
enum class EngineWish : uint8_t { kAuto, kKernel, kCopy, kStream };

struct Config {
  std::chrono::milliseconds joinTimeout{60'000};
  std::chrono::milliseconds connectTimeout{20'000};
  std::chrono::milliseconds operationTimeout{30 * 60'000};
  // What is not said for an operation the plan decides.
  schedule::ChannelRules channels;
  schedule::AlgorithmRules algorithms;
  plan::ProtocolRules protocols;  // of GPUs
  std::string transports;         // empty: all
  link::TransportSettings transportSettings;
  int groupSize = 0;  // ranks of a (virtual) host for hierarchical algorithms; 0: see Placement
  std::chrono::milliseconds heartbeat{20'000};  // zero: silence is no failure
  bool encrypt = false;
  bool reproducible = false;  // the same bits for a number of ranks, however they are placed and whatever is chosen
  bool preflight = false;     // TUTTI_PREFLIGHT
  bool provesPlans = false;   // each schedule is proved before it runs
  std::string dumpDirectory;  // TUTTI_DUMP_DIR; empty: no dumps
  std::string traceFile;      // TUTTI_TRACE; empty: no trace
  plan::Profile prices;       // of TUTTI_PROFILE
  std::string name;
  bool nonBlocking = false;  // it is made in the background
  int device = -1;           // the GPU where all buffers are, by its number in this process; -1: host memory
  EngineWish engine = EngineWish::kAuto;
  // Streams of this process that the GPU can keep apart (CUDA_DEVICE_MAX_CONNECTIONS): more share its queues.
  uint32_t gpuQueues = 8;
  std::string topoFile;                          // TUTTI_TOPO_FILE: describes this host; empty: it is detected
  size_t deviceSlotBytes = size_t{128} << 20;    // what a rank may spend on slots on its GPU
  size_t deviceArgumentBytes = size_t{1} << 20;  // for arguments that do not fit into a launch
  uint64_t llFlagMask = 0xffffffff;              // tests shorten it: see kernels/cuda/ll.cuh

  // Those of the variables below that are set and that the caller's struct has a field for, with their values. Children
  // inherit them, so that the environment wins there too.
  std::map<std::string, std::string> variables;
  // By the name of the field: what a variable won over, "config.algorithm=ring by TUTTI_ALGO=tree".
  std::map<std::string, std::string> overridden;

  // The defaults, with TUTTI_JOIN_TIMEOUT_MS, TUTTI_CONNECT_TIMEOUT_MS, TUTTI_OPERATION_TIMEOUT_MS, TUTTI_CHANNELS,
  // TUTTI_TRANSPORT, TUTTI_TRANSPORT_PLUGINS, TUTTI_IB_*, TUTTI_ALGO, TUTTI_PROTOCOL, TUTTI_GROUP_SIZE,
  // TUTTI_HEARTBEAT_MS, TUTTI_ENCRYPT, TUTTI_REPRODUCIBLE, TUTTI_VERIFY, TUTTI_PREFLIGHT, TUTTI_PROFILE,
  // TUTTI_DUMP_DIR, TUTTI_DEVICE, TUTTI_ENGINE, TUTTI_TOPO_FILE and TUTTI_GPU_BUFFER_MIB. Throws
  // Error(kInvalidArgument).
  static Config fromEnvironment();
};

// Those that may be used by this configuration. Throws Error(kInvalidArgument).
link::Registry registryFor(const Config& config);
// As a rank on a GPU has it, wherever this one is: what all ranks are to have alike. That some are not on a GPU is told
// by other words.
link::Registry registryOfAll(const Config& config);
// `list` as it is, when there is what it names. Throws Error(kInvalidArgument): before anybody joins.
std::string checkedTransports(std::string list, const link::TransportSettings& settings);

// "cpu" → -1, "cuda:2" → 2, "cuda" → the calling thread's current GPU. Throws Error(kInvalidArgument).
int deviceByName(const std::string& name);

}  // namespace tutti::comm
