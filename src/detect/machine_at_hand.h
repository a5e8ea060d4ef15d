// The machine at hand as a system: what hwloc, the kernel and NVIDIA's management library tell of it together.
#pragma once
#include <string>

#include "process/nvml.h"
#include "topology/system.h"

namespace tutti::detect {

// Where the facts come from. For tests, another machine's can be given.
struct Sources {
  std::string hwlocXml;             // hwloc's description; "": that of this machine
  std::string root;                 // below which /sys is
  const char* nvml = kNvmlLibrary;  // the file of NVML
};

// With links; each source that is missing is told in the remarks, as is what it would have said. Throws nothing for
// lack of sources: in the least it is one memory node with the cores of this process. Takes a tenth of a second and
// more.
topology::System detectSystem(const Sources& sources = {});

// The same without links, for who adds to it.
topology::System detectDevices(const Sources& sources = {});

}  // namespace tutti::detect
