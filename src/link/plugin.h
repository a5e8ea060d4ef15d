// Transports in shared objects, which know tutti by include/tutti/transport.h alone.
#pragma once
#include <memory>
#include <string>

#include "link/transport.h"
#include "link/transport_settings.h"

namespace tutti::link {

// Opens the shared object, which stays for as long as the process, and asks it for its transport. Throws
// Error(kInvalidArgument) that names the file and what is wrong with it. Any thread.
std::unique_ptr<Transport> loadTransport(const std::string& path, const TransportSettings& settings);

struct PluginPrice {
  double latencyUs = 0, bandwidthGBs = 0;
};

// A transport that cannot be used here, and why; its name and price are known, so that this rank plans the links of
// others as they do.
std::unique_ptr<Transport> makeAbsent(std::string name, PluginPrice price, std::string why);

}  // namespace tutti::link
