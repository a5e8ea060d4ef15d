// A system in NCCL's XML or in hwloc's, as users bring it: what is read can be written, read again, and looked at.
#include "base/error.h"
#include "exchange/hwloc_xml.h"
#include "exchange/nccl_xml.h"
#include "exchange/system_file.h"
#include "fuzz/input.h"
#include "topology/paths.h"
#include "topology/warnings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti;
  fuzz::Input in(data, size);
  try {
    const topology::System system = topology::readSystem(in.text(), "input");
    const topology::Paths paths(system);
    for (int device = 0; device < static_cast<int>(system.devices.size()); ++device) {
      fuzz::require(!nameOf(system, device).empty());
      fuzz::require(paths.between(device, device).type == topology::PathType::kLocal);
    }
    topology::warningsOf(system);
    const std::string text = topology::writeNcclXml(system);
    fuzz::require(topology::writeNcclXml(topology::readNcclXml(text, "output")) == text);
    topology::readSystem(topology::writeHwlocXml(system), "output");
  } catch (const Error& error) {
    fuzz::require(error.code() == ErrorCode::kInvalidArgument);
  }
  return 0;
}
