// What TUTTI_DEBUG=info tells of a communicator when it is made: a table, on rank 0 alone, since what it says is the
// same on every rank. In pieces that can be tested by themselves.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "link/registry.h"
#include "net/network.h"
#include "team/executor.h"
#include "topology/peer_info.h"

namespace tutti::comm {

// The ranks of each host. Of many hosts the last share a row.
Rows describeHosts(std::span<const topology::PeerInfo> infos);
// The addresses that this process advertises, with their interfaces. Throws nothing.
Rows describeInterfaces(const Network& network);
// What the registry would take for each kind of link that there is, and why nothing that comes before it.
Rows describeLinks(const link::Registry& registry, std::span<const topology::PeerInfo> infos);
// What is planned for so many bytes, in words; sizes that are planned alike become one range.
using PlanOf = std::function<std::string(Collective collective, size_t bytes)>;
Rows describePlans(const PlanOf& planOf);

// On rank 0: logs the table, where TUTTI_DEBUG=info or more; or, once in a process, the version, for
// TUTTI_DEBUG=version. `network`: with which it was joined. Costs a look at the level otherwise. Throws nothing.
void introduce(const Executor& executor, const Network& network) noexcept;

}  // namespace tutti::comm
