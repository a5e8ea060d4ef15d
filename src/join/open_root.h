// Where ranks first meet.
#pragma once
#include "base/deadline.h"
#include "job/unique_id.h"
#include "net/network.h"

namespace tutti::control {

// The root of a job: listens where the ranks first meet. Lives in the process that asked for the unique id, keeps a
// thread of its own until every rank has been placed or `lifetime` is over, and then goes away by itself.
UniqueId openRoot(const Network& network, Deadline lifetime);
// The same for ranks that are all in this process: nobody is handed an id, and no text speaks of one.
UniqueId openRootHere(const Network& network, Deadline lifetime);
// Ends that one once nobody will come to it any more. Where there is no memory it ends at its deadline.
void closeRootHere(const UniqueId& id) noexcept;

}  // namespace tutti::control
