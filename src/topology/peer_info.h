// What one rank tells the others about where it runs. Exchanged once while joining.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace tutti::topology {

struct PeerInfo {
  std::string hostName;    // for texts only
  uint64_t hostId = 0;     // equal exactly for ranks that can reach each other's abstract Unix sockets: a hash of the
                           // boot id and the network namespace. TUTTI_HOST_ID overrides it (tests).
  uint64_t machineId = 0;  // equal for ranks whose cores have one number: a hash of the boot id. 0: as hostId says
  uint64_t processToken = 0;  // random, one per process: equal for ranks that are threads of one process
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t cores = 1;               // that this process may run on, or, if that is less, whose time it is granted
  std::vector<std::byte> coreBits;  // which, a bit each, from core 0 on; empty: not known
  int32_t numaNode = -1;  // of the cores it may run on, -1 when they are of several; of a rank on a GPU, that GPU's
  // Where the rank's buffers are: the number of its GPU in its process, or -1 for host memory.
  int32_t device = -1;
  uint64_t gpu = 0;             // tells one GPU from another, in every process
  std::string gpuBusId;         // its place on the PCI bus, "0000:3b:00.0"; "": not known
  uint32_t gpuBlocks = 0;       // blocks of the collective kernel that the GPU can still hold beside those promised
  uint32_t gpuQueues = 0;       // streams of the process that can wait there at once; 0: its streams can not wait
  uint8_t gpuEngine = 0;        // what its user wants operations run by: comm::EngineWish
  bool unixSockets = true;      // whether it may be called at one
  bool wantsPreflight = false;  // TUTTI_PREFLIGHT: what hosts lack is to be told when all have joined
  // Mbit/s of the interface at which others call it first; 0: nobody knows.
  uint32_t networkMegabits = 0;
  uint32_t rdmaMegabits = 0;  // of all RDMA ports that it may use, together; 0: none, or not known
  // Transports that it cannot use with anybody, by name, and why: so that both ends of a link choose alike.
  std::map<std::string, std::string> lacks;
};

// That of the calling process. Throws nothing: what cannot be found out stays at its default. `root`: as
// processorQuota() has it.
PeerInfo describeSelf(const std::string& root = "");

// Containers may be hosts of their own and have their cores in common.
uint64_t machineIdOf(const PeerInfo& rank) noexcept;

size_t countOfCores(const PeerInfo& rank) noexcept;  // that it may run on; 0 where they are not known
// The first of the cores that it may run on; 0 where they are not known.
int firstCoreOf(const PeerInfo& rank) noexcept;
// The one core that it is kept on; -1: it may run on several, or they are not known.
int onlyCoreOf(const PeerInfo& rank) noexcept;

// How many ranks share a core of a machine: launchers keep ranks on cores of their own, or let all of them run on all.
class CoreLoad {
 public:
  void add(const PeerInfo& rank);  // that runs there, on any of its cores alike
  // On average over those that this one may run on. Up to 1, it has one of its own: only then does spinning pay.
  double of(const PeerInfo& rank) const;

 private:
  std::vector<double> perCore_;
  std::map<uint64_t, int> ranksOf_;  // of each host
};

// Of this rank, on its machine.
double ranksPerCore(std::span<const PeerInfo> infos, int rank);

std::vector<std::byte> encode(const PeerInfo& info);
PeerInfo decodePeerInfo(std::span<const std::byte> bytes);  // throws Error(kRemote) for bytes that are none

}  // namespace tutti::topology
