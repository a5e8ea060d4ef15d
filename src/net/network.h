// Where and how to listen: which of this host's addresses to take and to advertise.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

namespace tutti {

// Read once from the environment (TUTTI_SOCKET_IFNAME: see matchesInterface(); TUTTI_SOCKET_FAMILY: 4, 6 or 0;
// TUTTI_PORT_RANGE: "first-last") and passed down.
struct Network {
  std::string interfaces;
  int family = 0;                        // 0: both
  uint16_t firstPort = 0, lastPort = 0;  // 0: any
  bool unixSockets = true;               // false: TCP even between ranks of one host (TUTTI_UNIX_SOCKETS=0)
  static Network fromEnvironment();      // throws Error(kInvalidArgument)
  // As far as it can be read, the rest as if it were not set: so a rank tells the others what is wrong with that.
  static Network asFarAsReadable();
};

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
// Mbit/s of the first of them, as the kernel tells; 0 where it does not (virtual machines), and where there is none.
// Throws nothing. `root`: in front of the kernel's folders, for tests.
uint32_t firstMegabits(const Network& network, const std::string& root = "");
// The same addresses as this host must name them: an interface's number, which is part of a link-local address, means
// something else on every host, so each of these becomes one for each interface here.
std::vector<Address> asSeenFromHere(const std::vector<Address>& addresses);
// Whether `name` passes a list: "eth,ib" beginnings of names, "=eth0,ib0" whole names, "^docker,lo" all but these,
// "^=docker0,lo" both; as NCCL reads it, where what is in front holds for the whole list. Beyond that, "eth,=ib0": a
// whole name among beginnings.
bool matchesInterface(const std::string& list, const std::string& name);
std::string hostName();

}  // namespace tutti
