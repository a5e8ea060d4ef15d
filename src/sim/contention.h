// The rule of contention: a resource carries one slot at a time, at its full bandwidth, in the order in which slots
// come to it (of two at the same moment, the one that was known of first).
#pragma once
#include <algorithm>
#include <vector>

#include "sim/network.h"

namespace tutti::sim {

class Contention {
 public:
  explicit Contention(const Network& network)
      : freeAt_(network.resources()), busy_(network.resources()), bytes_(network.resources()) {
    for (uint32_t resource = 0; resource < network.resources(); ++resource) gbs_.push_back(network.gbsOf(resource));
  }

  // Takes the resource as soon as it is free; returns when that is.
  Picoseconds occupy(uint32_t resource, uint32_t bytes, Picoseconds now) {
    const Picoseconds begin = std::max(now, freeAt_[resource]), length = lengthOf(resource, bytes);
    freeAt_[resource] = begin + length;
    busy_[resource] += length;
    bytes_[resource] += bytes;
    return begin;
  }

  Picoseconds lengthOf(uint32_t resource, uint32_t bytes) const { return timeOf(bytes, gbs_[resource]); }

  // Of a slot that began to leave and to come in at these times. It comes in as it leaves, so it is there when the
  // later of the two is through with it, plus the latency.
  Picoseconds arrival(const Path& path, uint32_t bytes, Picoseconds out, Picoseconds in) const {
    return std::max(in + lengthOf(path.in, bytes), out + lengthOf(path.out, bytes)) + path.latency;
  }

  std::vector<Picoseconds> takeBusy() { return std::move(busy_); }
  std::vector<uint64_t> takeBytes() { return std::move(bytes_); }

 private:
  std::vector<double> gbs_;
  std::vector<Picoseconds> freeAt_, busy_;
  std::vector<uint64_t> bytes_;  // that passed
};

}  // namespace tutti::sim
