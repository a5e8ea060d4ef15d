// Buffers of the user's in the hands of other ranks: which of them may use one, and how another process maps it.
#pragma once
#include <span>

#include "kernels/cuda/virtual.h"

namespace tutti::cuda {

// See device::Device. All throw Error(kCuda); accept() also Error(kRemote), for a record that came from outside and is
// none.
device::BufferOffer offerBuffer(const Context& context, const std::byte* buffer, size_t bytes);
std::unique_ptr<device::DeviceMemory> acceptBuffer(const SharedContext& context, std::span<const std::byte> record,
                                                   const UniqueFd& descriptor);
bool opensTo(const Context& context, const std::byte* buffer, int peerOrdinal);

}  // namespace tutti::cuda
