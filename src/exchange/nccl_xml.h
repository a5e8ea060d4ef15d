// NCCL's description of a system in XML, as NCCL_TOPO_FILE names one and cloud vendors publish them; also RCCL's.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "topology/system.h"

namespace tutti::topology {

// What `text` describes, with links; what is missing in it or unknown is told in the remarks. `source` names it in
// errors. Throws Error(kInvalidArgument), with the source and the place, for a text that is no such description, or has
// numbers that nothing can have, or is larger or deeper than any, or has a DOCTYPE.
System readNcclXml(std::string_view text, const std::string& source);

// What readNcclXml() makes the same system of. Comments are lost, elements and attributes are not.
std::string writeNcclXml(const System& system);

}  // namespace tutti::topology
