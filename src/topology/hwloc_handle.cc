#include "topology/hwloc_handle.h"

namespace tutti::topology {

fork::Mutex inHwloc;

}  // namespace tutti::topology
