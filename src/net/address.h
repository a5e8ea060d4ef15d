// Where somebody listens on a network.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace tutti {

// IPv4 (first 4 bytes used) or IPv6.
struct Address {
  bool v6 = false;
  std::array<uint8_t, 16> ip{};
  uint16_t port = 0;
  uint32_t scope = 0;  // of a link-local IPv6 address
  friend bool operator==(const Address&, const Address&) = default;
};
std::string toString(const Address& address);
std::string ipOf(const Address& address);  // without the port

}  // namespace tutti
