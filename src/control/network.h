// Which of this host's addresses to listen at and to advertise.
#pragma once
#include <vector>

#include "control/plane.h"

namespace tutti::control {

// The addresses (port 0) of the interfaces that `network` selects, best first: global ones, both families in turn, then
// loopback. Link-local ones are used only where there is nothing better. Throws Error(kInvalidUsage) when the selection
// matches nothing.
std::vector<Address> chosenAddresses(const Network& network);
// Whether `name` passes a list such as "eth,=ib0" or "^docker,=lo".
bool matchesInterface(const std::string& list, const std::string& name);
std::string hostName();

}  // namespace tutti::control
