// The transports of the random operations: those of the library, and the loopback that misbehaves on purpose.
#pragma once
#include <cstdint>

namespace tutti::faults {

// What the calling thread's next communicator runs over when it asks for "faulty". Communicators with one key share a
// network; each needs one of its own.
void useFaultyNetwork(uint64_t key, uint64_t seed);
void forgetFaultyNetworks();  // when no communicator uses them any more

}  // namespace tutti::faults
