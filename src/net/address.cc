#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

namespace tutti {

std::string ipOf(const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.ip.data(), text, sizeof text);
  return address.v6 && address.scope ? fmt::format("{}%{}", text, address.scope) : text;
}

std::string toString(const Address& address) {
  return fmt::format(fmt::runtime(address.v6 ? "[{}]:{}" : "{}:{}"), ipOf(address), address.port);
}

}  // namespace tutti
