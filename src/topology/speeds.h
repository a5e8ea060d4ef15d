// What links carry, in GB/s: the numbers that NCCL plans with.
#pragma once
#include <optional>
#include <string_view>

#include "topology/system.h"

namespace tutti::topology {

inline constexpr double kInternalGigabytes = 5000;  // of what is no link at all
inline constexpr double kAssumedTransfers = 8;      // GT/s of a PCI link of unknown speed
inline constexpr int kAssumedWidth = 16;            // lanes of one of unknown width
inline constexpr int kAssumedSm = 80;
inline constexpr int64_t kAssumedMegabits = 10'000;

// The number in "16 GT/s", "16.0 GT/s PCIe" or "16"; nullopt for a text that begins with no number above 0.
std::optional<double> transfersOf(std::string_view speed);

// A PCI link of so many GT/s and lanes; nullopt where no generation of PCI has that speed.
std::optional<double> pciGigabytes(double transfers, int width);

// One NVLink of a GPU of that compute capability.
double nvlinkGigabytes(int sm);

// Between memory nodes of that processor; nullopt where it is unknown.
std::optional<double> socketGigabytes(const Numa& numa);

double networkGigabytes(int64_t megabits);

}  // namespace tutti::topology
