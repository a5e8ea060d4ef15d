// From the elements of NCCL's XML to a system. For nccl_xml.cc alone.
#pragma once
#include <pugixml.hpp>

#include "topology/system.h"

namespace tutti::topology {

// `document` may be neither deep nor large. Throws Error(kInvalidArgument) as readNcclXml().
System readSystem(const pugi::xml_document& document);

}  // namespace tutti::topology
