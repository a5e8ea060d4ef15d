// The systems that stand in one's own room. For known_systems.cc, which has their names.
#pragma once
#include "topology/system.h"

namespace tutti::topology {

System makeDgxA100();
System makeHgxH100();
System makePcieBox();
System makeEthernetHost();

}  // namespace tutti::topology
