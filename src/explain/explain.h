// What the library chooses for an operation on a system that need not be there, and why: every candidate with its
// predicted time, what left out the others, the rings that the links carry, and what each link goes over.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "device/protocol.h"
#include "plan/device.h"
#include "rings/host_links.h"
#include "rings/search.h"
#include "sim/cluster.h"

namespace tutti::explain {

struct Question {
  Collective collective = Collective::kAllReduce;
  size_t bytes = 0;                 // as nccl-tests count them
  int hosts = 1, ranksPerHost = 0;  // 0: as sim::clusterOf() has it
  schedule::Allowed algorithm;      // all, where nothing is said
  plan::AllowedProtocols protocol;  // on GPUs
  int channels = 0;                 // 0: as planned
  // On host memory: what joins ranks of one node ("p2p", "shm", "tcp"), and the prices of such a machine.
  std::string transport = "shm";
  plan::Profile prices;
};

struct Candidate {
  schedule::Algorithm algorithm = schedule::Algorithm::kRing;
  std::optional<Protocol> protocol;  // on GPUs
  int channels = 1;
  double us = 0;
  double setUpUs = 0;  // beside that, in the first call, on host memory: its links
  double busGBs = 0;   // as nccl-tests have it
};

// What lies between two ranks, and why nothing faster does.
struct Way {
  std::string between;  // "ranks of one node"
  std::string over;     // "p2p: kernels store over NVLink (NVL)"
  double gigabytes = 0;
  std::string notFaster;
};

struct Answer {
  sim::Cluster cluster;
  bool onGpus = false;
  std::vector<Candidate> candidates;                      // the choice first, then the others by what a call costs
  std::vector<std::string> excluded;                      // "name: reason"
  topology::PathType among = topology::PathType::kLocal;  // the worst way between two of a node's GPUs
  rings::HostLinks links;                                 // of the GPUs of one node that have ranks
  rings::Rings rings;                                     // of all GPUs of one node; none without GPUs
  std::vector<Way> ways;
  std::vector<std::string> warnings;  // of the system

  const Candidate& choice() const { return candidates.front(); }
};

// Throws Error(kInvalidArgument) for a system that no cluster can be made of (sim::clusterOf), an algorithm that the
// operation lacks, and one rank alone.
Answer explain(const topology::System& system, std::string_view name, const Question& question);

// The GPUs of such a cluster as the plan of kernels sees them.
plan::DeviceMachine deviceMachineOf(const sim::Cluster& cluster, const rings::HostLinks& links);

}  // namespace tutti::explain
