// The rings through a host's GPUs that its links carry at the same time, each as wide as the others.
//
// The question is NCCL's (its src/graph searches for rings, too): ways of the best kind first, NVLink before all
// others; where the job has several hosts, each ring comes in through a NIC and leaves through one, near the GPUs at
// its ends, and no NIC has to carry more than it can in either direction.
#pragma once
#include <string>
#include <vector>

#include "topology/paths.h"
#include "topology/system.h"

namespace tutti::rings {

struct Ring {
  std::vector<int> gpus;  // positions in System::devices; the last one sends to the first, of this host or of the next
  int entry = -1, exit = -1;  // ports; -1 on one host
};

struct Rings {
  std::vector<Ring> rings;
  double gigabytes = 0;                                   // of each ring, a second
  topology::PathType among = topology::PathType::kLocal;  // the worst way between neighbours
  topology::PathType toNic = topology::PathType::kLocal;  // the worst way between an end and its port

  double total() const noexcept { return gigabytes * static_cast<double>(rings.size()); }
};

inline constexpr int kMostRings = 32;

// `leaves`: for a job of several such hosts. Without rings where the GPUs do not reach each other inside the host, a
// GPU reaches no port, or there are no two GPUs (on several hosts: no GPU). Deterministic. GPUs are tried in the order
// of their numbers. The search is exhaustive where that takes a few thousand tries, as for eight GPUs whose NVLinks are
// a mesh; beyond that it keeps the best that it has seen. Takes milliseconds for a host, a second or so for a rack.
Rings searchRings(const topology::System& system, const topology::Paths& paths, bool leaves);

// "GPU 0 - GPU 1 - …"; with ports: "mlx5_0 > GPU 0 - … > mlx5_1".
std::string textOf(const topology::System& system, const Ring& ring);

}  // namespace tutti::rings
