// Transports in shared objects, which know tutti by include/tutti/transport.h alone.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "link/transport.h"
#include "link/transport_settings.h"

namespace tutti::link {

// Opens the shared object, which stays for as long as the process, and asks it for its transport. One that reaches the
// memory of GPUs is two for a communicator on a GPU: also NAME+gpu, whose slots lie there. Throws
// Error(kInvalidArgument) that names the file and what is wrong with it. Any thread.
std::vector<std::unique_ptr<Transport>> loadTransport(const std::string& path, const TransportSettings& settings);

struct PluginPrice {
  double latencyUs = 0, bandwidthGBs = 0;
};

inline constexpr std::string_view kOnGpu = "+gpu";
// "verbs" of verbs+gpu.
constexpr std::string_view familyOf(std::string_view name) noexcept {
  return name.ends_with(kOnGpu) ? name.substr(0, name.size() - kOnGpu.size()) : name;
}
// It is spared the way through the host's memory. A judgement; what counts is that of the two it is tried first.
constexpr PluginPrice priceOnGpu(PluginPrice price) noexcept {
  return {price.latencyUs * 0.9, price.bandwidthGBs * 1.1};
}

// A transport that cannot be used here, and why; its name and price are known, so that this rank plans the links of
// others as they do.
std::unique_ptr<Transport> makeAbsent(std::string name, PluginPrice price, std::string why);

}  // namespace tutti::link
