// Joins the transports of this build to the registry: the one place that knows them all.
#include "link/registry.h"
#include "transports/p2p/p2p.h"
#include "transports/shm/shm.h"
#include "transports/tcp/tcp.h"

namespace tutti::link {

Registry builtinTransports(std::string_view list) {
  Registry registry;
  registry.add(transports::makeP2p());
  registry.add(transports::makeShm());
  registry.add(transports::makeTcp());
  if (!list.empty()) registry.narrow(list);
  return registry;
}

}  // namespace tutti::link
