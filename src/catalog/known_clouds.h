// The systems of clouds. For known_systems.cc, which has their names.
#pragma once
#include "topology/system.h"

namespace tutti::topology {

System makeAzureNdv2();
System makeAzureNdv4();
System makeAzureNdv5();
System makeAzureHbv3();
System makeAzureHc();
System makeAwsP4d();
System makeAwsP5();
System makeIbmHgxH100();

}  // namespace tutti::topology
