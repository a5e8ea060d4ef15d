// The links among the ranks that are run: all ranks, or those of host 0, which stand for all others.
//
// Where every host does what its neighbour does, one host later around the ring of hosts, all do the same at the same
// time. Then host 0 is enough: what it sends to the host k further on, it gets at that moment from the host k before
// it. So a link is known by its sender on host 0 and by its receiver, wherever that is.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "sim/network.h"

namespace tutti::sim {

using schedule::Schedule;

struct Wire {
  static constexpr uint32_t kNobody = ~0u;
  uint32_t sender = kNobody, receiver = kNobody;  // positions among the schedules
  Path path;
};

struct Wiring {
  std::vector<Wire> wires;
  // Of the rank at position i, in the order of its schedule: wires in[inBegin[i]] …, out[outBegin[i]] ….
  std::vector<uint32_t> in, out, inBegin, outBegin;

  bool complete() const noexcept;  // every wire has both ends
};

// schedules[i] is rank i's. Throws Error(kInvalidArgument) for a peer that is not there.
Wiring wiringOf(std::span<const Schedule> schedules, const Network& network, bool folded);

// Whether `later` is `first` on the next but `hosts - 1` host: the same steps with peers that are so many hosts on.
bool sameButFor(const Schedule& first, const Schedule& later, int ranksOn);

}  // namespace tutti::sim
