// GPUs as NVIDIA's management library (NVML) tells them: their numbers, generation and NVLinks.
#pragma once
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::detect {

// A GPU where it sits on the bus.
struct SeenGpu {
  std::string busId;  // as the kernel spells it
  topology::Gpu gpu;
};

// All GPUs of the host. What is missing or odd is added to the remarks, for lack of NVML itself too. `library`: the
// file.
std::vector<SeenGpu> seenByNvml(const char* library, std::vector<std::string>& remarks);

// Adds what was seen to the GPUs of a system without links. One that the system does not have, as it may be in a
// container, goes to the first memory node.
void addGpus(topology::System& system, const std::vector<SeenGpu>& seen);

}  // namespace tutti::detect
