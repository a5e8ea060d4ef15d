// From an XML document to a system.
#pragma once
#include <pugixml.hpp>

#include "topology/system.h"

namespace tutti::topology {

// Its devices, without links. Throws Error(kInvalidArgument), without a source, for what is no description of a system.
System devicesOfNcclXml(const pugi::xml_document& document);

}  // namespace tutti::topology
