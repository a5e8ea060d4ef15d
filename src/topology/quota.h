// How much of its processors' time, and of its memory, a process may use: a container is mostly given a share of time
// and all cores.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace tutti::topology {

// Processors' worth of time that the control groups of the calling process leave it, the least of any group above it;
// nullopt where none limits it or none can be read. `root`: where /proc and /sys are, for tests.
std::optional<double> processorQuota(const std::string& root = "");
// Bytes of memory that they leave it together with all else in them; as above.
std::optional<uint64_t> memoryQuota(const std::string& root = "");

}  // namespace tutti::topology
