// Where ranks first meet.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "base/deadline.h"
#include "job/unique_id.h"
#include "net/network.h"

namespace tutti::control {

// The root of a job: listens where the ranks first meet. Lives in the process that asked for the unique id, keeps a
// thread of its own until every rank has been placed or `lifetime` is over, and then goes away by itself.
UniqueId openRoot(const Network& network, Deadline lifetime);
// The same for ranks that are all in this process: nobody is handed an id, and no text speaks of one.
UniqueId openRootHere(const Network& network, Deadline lifetime);
// A rank of this process, of `size`, fails before it has a connection to say so over: the root of that job, if it is
// here as well, tells the others; false: it is not. Never fails: where there is no memory, they wait for their
// deadline.
bool tellRootHere(uint64_t job, int rank, int size, const std::function<std::string()>& why) noexcept;
// The same for who has no memory to call any root.
template <class Body>
auto orTellRootHere(uint64_t job, int rank, int size, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    tellRootHere(job, rank, size, [&] { return fmt::format("rank {} could not join: out of memory", rank); });
    throw;
  }
}
// Ends that one once nobody will come to it any more.
void closeRootHere(uint64_t job) noexcept;
// A rank of this process has failed, and the process may end as soon as the caller knows it: where the root is here as
// well, blocks until as many have heard of it as there are ranks, until a second after the first has, or until
// `cancelled`. Any thread but the root's.
void awaitLastCallsHere(uint64_t job, const std::function<bool()>& cancelled = {}) noexcept;

}  // namespace tutti::control
