// The address of a socket's other end, for texts.
#pragma once
#include <string>

namespace tutti::transports {

// "10.0.0.2:4242", "[fe80::1]:4242", or "address unknown". Numeric: no name service is asked.
std::string peerAddress(int socket);

}  // namespace tutti::transports
