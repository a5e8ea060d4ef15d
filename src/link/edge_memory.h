// The memory of one edge: a FIFO for each direction, side by side, the lower rank's first.
//
// Memory transports map one such region into both ranks; network transports keep one at each end.
#pragma once
#include <cstddef>

#include "link/link.h"
#include "link/transport.h"
#include "process/fd.h"

namespace tutti::link {

// As a driver has it, which moves slots with their lines: one for each.
Edge driven(Edge edge) noexcept;

// Bytes of the region. Throws Error(kInvalidArgument) when slotBytes is 0 or depth is no power of two.
size_t edgeMemoryBytes(const Edge& edge);

// Lays the two FIFOs out in `memory` (edgeMemoryBytes() zeroed bytes, 128-byte aligned) and makes `connection`'s ends
// speak over them: each rank sends on its own direction. `peerBell` may be null.
void connectOver(Connection& connection, const Edge& edge, std::byte* memory, Doorbell* peerBell);

// The same with the slots in other memory: what stays in `memory` has headMemoryBytes(), the slots slotMemoryBytes().
size_t headMemoryBytes(const Edge& edge);
size_t slotMemoryBytes(const Edge& edge);
void connectApart(Connection& connection, const Edge& edge, std::byte* memory, std::byte* slots);

// Anonymous zeroed memory of the process, committed page by page as it is touched. Throws Error.
UniqueMap mapPrivate(size_t bytes);

// A file that a rank passes to its peers on the host: its Doorbell, and its shared slots behind that.
inline constexpr size_t kSharedSlotsAt = 4096, kBellFileBytes = kSharedSlotsAt + SharedSlots::kMemoryBytes;

// Maps the bell in the memory file `fd`, and what is behind it: the owner of the returned pages can ring it and read
// there for as long as it likes, whether the sleeper is still there or not. Throws Error(kRemote) when the file is none
// of createMemoryFile() and kBellFileBytes.
UniqueMap mapBell(int fd);

}  // namespace tutti::link
