// A transport that behaves badly on purpose, within one process: it moves slots late and in pieces, serves the
// two directions in any order, rings bells for nothing, stops, breaks, or spoils what it carries. What it does follows
// from a seed alone.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "link/transport.h"

namespace tutti::test {

enum class FaultAt : uint8_t { kNowhere, kOpen, kConnect, kHang, kData };

struct FaultPlan {
  uint64_t seed = 1;
  uint32_t latePercent = 50;   // of the looks at a link that find that nothing has come yet
  uint32_t pieceBytes = 1000;  // at most so much of a payload moves at a time
  FaultAt failAt = FaultAt::kNowhere;
  int onlyRank = -1;  // the rank that the failure strikes; -1: both
  double latencyUs = 0.1, bandwidthGBs = 10;
};

// One wire: what is on its way from one end to the other.
struct FaultyWire;

// What the transports of all ranks of a test share.
class FaultyNetwork {
 public:
  // While stopped nothing moves; a cut link fails at both ends, for good.
  void stop(bool stopped) noexcept { stopped_.store(stopped); }
  void cut() noexcept { cut_.store(true); }
  bool stopped() const noexcept { return stopped_.load(); }
  bool isCut() const noexcept { return cut_.load(); }
  std::shared_ptr<FaultyWire> wire(const link::Edge& edge, bool fromSelf);

 private:
  std::atomic<bool> stopped_{false}, cut_{false};
  std::mutex mutex_;
  // By from, to and channel: the halves that nobody has taken yet, the sender's and the receiver's.
  std::map<std::tuple<int, int, int>, std::array<std::deque<std::shared_ptr<FaultyWire>>, 2>> wires_;
};

// Named "faulty"; ranks of one process can use it.
std::unique_ptr<link::Transport> makeFaulty(std::shared_ptr<FaultyNetwork> network, const FaultPlan& plan);

}  // namespace tutti::test
