// Which of this host's addresses to listen at and to advertise.
#pragma once
#include <string>
#include <vector>

#include "control/plane.h"

namespace tutti::control {

// The addresses (port 0) of the interfaces that `network` selects, best first: those of interfaces that the default
// route takes, of other interfaces, of those without a carrier, both families in turn, then loopback. Link-local ones
// are used only where there is nothing better. Throws Error(kInvalidUsage) when the selection matches nothing.
std::vector<Address> chosenAddresses(const Network& network);
// The same, each with the name of its interface.
struct Interface {
  std::string name;
  Address address;
};
std::vector<Interface> chosenInterfaces(const Network& network);
// The same addresses as this host must name them: an interface's number, which is part of a link-local address, means
// something else on every host, so each of these becomes one for each interface here.
std::vector<Address> asSeenFromHere(const std::vector<Address>& addresses);
// Whether `name` passes a list such as "eth,=ib0" or "^docker,=lo".
bool matchesInterface(const std::string& list, const std::string& name);
std::string hostName();

}  // namespace tutti::control
