// What names the interfaces, the family and the ports to listen at, as people write it: a choice of this host's own
// addresses, or an Error that says what is wrong with it.
#include <cstdlib>

#include "base/error.h"
#include "fuzz/input.h"
#include "net/network.h"
#include "settings/settings.h"

namespace tutti::fuzz {
namespace {

void set(const char* name, const std::string& value) {
  if (value.empty())
    ::unsetenv(name);
  else
    ::setenv(name, value.c_str(), 1);
}

void require(const Network& network, const Interface& chosen) {
  fuzz::require(matchesInterface(network.interfaces, chosen.name));
  fuzz::require(network.family == 0 || (network.family == 6) == chosen.address.v6);
}

void run(Input in) {
  const auto how = in.take<uint8_t>();
  const std::string family = in.text(how % 4), ports = in.text(how / 4 % 16);
  const std::string list = in.text();
  set("TUTTI_SOCKET_FAMILY", family);
  set("TUTTI_PORT_RANGE", ports);
  set("TUTTI_SOCKET_IFNAME", list);
  try {
    const Network network = Network::fromEnvironment();
    fuzz::require(network.firstPort <= network.lastPort);
    for (const Interface& one : chosenInterfaces(network)) require(network, one);
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0');
  }
  // A list names what it does not exclude, and the other way round.
  const size_t first = list.starts_with('=') ? 1 : 0;
  if (!list.starts_with('^') && list.find_first_not_of(',', first) != std::string::npos)
    fuzz::require(matchesInterface(list, "lo") != matchesInterface("^" + list, "lo"));
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::run({data, size});
  return 0;
}
