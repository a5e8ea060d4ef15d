// What is set for transports, as a communicator found it when it was made.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "link/gpu_slots.h"

namespace tutti::link {

// TUTTI_SINGLE_COPY: whether ranks of one host read long messages in each other's memory.
enum class SingleCopy : uint8_t { kNever, kWhereFaster, kAlways };

struct TransportSettings {
  std::string plugins;                        // TUTTI_TRANSPORT_PLUGINS: paths with commas between
  std::map<std::string, std::string> values;  // of TUTTI_IB_*, by name
  std::string tcpCongestion{};                // TUTTI_TCP_CONGESTION: as setCongestion takes it
  SingleCopy singleCopy = SingleCopy::kWhereFaster;
  std::shared_ptr<const GpuSlotSource> gpuSlots{};  // of a communicator on a GPU; null: of one in host memory
};

}  // namespace tutti::link
