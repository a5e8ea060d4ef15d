// Talks over a connection the way an executor does, and checks every byte that it hears.
#pragma once
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "link/link.h"
#include "support/edge_pair.h"

namespace tutti::test {

// How many bytes slot `number` of the rank `from` carries.
using SizeOfSlot = std::function<uint32_t(int from, uint64_t number)>;

class TrafficGenerator {
 public:
  // Slots are numbered from where the connection's counters stand. `self` names this end's rank in the pattern.
  TrafficGenerator(link::Connection& connection, int self, SizeOfSlot sizes);

  void drive();       // the link's driver, if it has one; sets failure()
  bool sendOne();     // false: no room
  bool receiveOne();  // false: nothing there; sets failure() when what came is wrong
  // Sends and receives `count` slots each way, until all is through, a failure or the time limit.
  void exchange(uint64_t sends, uint64_t receives);
  const std::string& failure() const noexcept { return failure_; }

 private:
  void check();

  link::Connection& connection_;
  int self_, peer_;
  SizeOfSlot sizes_;
  uint64_t sendBase_, receiveBase_;
  std::string failure_;
};

// Sizes that meet every boundary: nothing, inline, just over, small, full.
SizeOfSlot mixedSizes(uint32_t slotBytes, uint64_t seed);

// Both ends in threads of their own, `count` slots each way. Fails the calling test when something is wrong.
void exchangeInThreads(ConnectionPair& ends, EdgePair& edges, uint64_t count, const SizeOfSlot& sizes);

}  // namespace tutti::test
