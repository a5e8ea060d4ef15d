// Slots of links to a network in memory of a GPU: what transports ask of this process's GPU.
#pragma once
#include <memory>

#include "link/gpu_slots.h"

namespace tutti::device {

// The GPU is opened when it is first asked. What links have had stays with the source, for the next ones.
std::shared_ptr<const link::GpuSlotSource> slotSourceOf(int ordinal);

}  // namespace tutti::device
