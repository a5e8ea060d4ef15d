// Reads what a host has.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "net/network.h"
#include "preflight/host_report.h"

namespace tutti::preflight {

// What a process sees of an interface without any file: in a network namespace of its own, /sys may tell of another's.
struct SeenInterface {
  std::string name;
  int index = 0;
  int64_t mtu = 0;
  bool isUp = false, isLoopback = false;  // up: switched on, and with a carrier
  std::vector<NetAddress> addresses;
};

// What no file tells, and below which folder the files are. Tests make theirs up.
struct Sources {
  std::string root;  // below which /sys, /proc and /dev are
  std::vector<SeenInterface> interfaces;
  std::vector<std::string> used;  // those whose addresses are told to other ranks, the best first
  std::string rdmaPorts;          // TUTTI_IB_HCA
  int gidIndex = -1;              // TUTTI_IB_GID_INDEX
  Limits limits;                  // of the process: what may be locked, and open files
};

// Of the calling process; reads nothing of the environment. `network`: with which it joins; `settings`: as
// link::TransportSettings::values.
Sources sourcesHere(const Network& network, const std::map<std::string, std::string>& settings);

// All but who reports. What cannot be read stays unknown; throws nothing for that. Takes some milliseconds.
HostReport collect(const Sources& sources);

}  // namespace tutti::preflight
