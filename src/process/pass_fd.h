// Descriptors that cross a Unix stream with the bytes beside them.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "process/fd.h"

namespace tutti {

// Sends what can be sent now, never blocking, with the descriptors, if any: they stay the caller's, and go with the
// first byte. Returns how many bytes have gone. Throws Error(kSystem).
size_t sendWithFds(int stream, std::span<const std::byte> bytes, std::span<const int> fds);

// Receives what is there, and adds the descriptors that came with it to `fds`, wanted or not: none leaks. At most
// `mostFds` are expected at a time. Returns how many bytes have come, 0 when none is there yet. Throws Error: kRemote
// when the stream has ended or descriptors were lost.
size_t receiveWithFds(int stream, std::span<std::byte> bytes, size_t mostFds, std::vector<UniqueFd>& fds);

}  // namespace tutti
