// What is set for transports, as a communicator found it when it was made.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace tutti::link {

// TUTTI_SINGLE_COPY: whether ranks of one host read long messages in each other's memory.
enum class SingleCopy : uint8_t { kNever, kWhereFaster, kAlways };

struct TransportSettings {
  std::string plugins;                        // TUTTI_TRANSPORT_PLUGINS: paths with commas between
  std::map<std::string, std::string> values;  // of TUTTI_IB_*, by name
  SingleCopy singleCopy = SingleCopy::kWhereFaster;
};

}  // namespace tutti::link
