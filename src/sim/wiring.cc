#include "sim/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"

namespace tutti::sim {
namespace {

class Wirer {
 public:
  Wirer(const Network& network, bool folded) : network_(network), folded_(folded) {}

  void add(const Schedule& schedule, uint32_t position) {
    made_.inBegin.push_back(static_cast<uint32_t>(made_.in.size()));
    made_.outBegin.push_back(static_cast<uint32_t>(made_.out.size()));
    for (const int peer : schedule.inPeers) {
      const uint32_t number = wire(checked(peer, schedule.rank), schedule.rank);
      made_.wires[number].receiver = position;
      made_.in.push_back(number);
    }
    for (const int peer : schedule.outPeers) {
      const uint32_t number = wire(schedule.rank, checked(peer, schedule.rank));
      made_.wires[number].sender = position;
      made_.out.push_back(number);
    }
  }

  Wiring take() { return std::move(made_); }

 private:
  int checked(int peer, int rank) const {
    if (peer >= 0 && peer < network_.cluster().ranks()) return peer;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rank {} has a link with rank {}, of {} ranks", rank, peer, network_.cluster().ranks()));
  }

  uint32_t wire(int from, int to) {
    if (folded_) {
      const int ranks = network_.cluster().ranks(), ranksPerHost = network_.cluster().ranksPerHost;
      const int back = from / ranksPerHost * ranksPerHost;
      from -= back;
      to = (to - back + ranks) % ranks;
    }
    const uint64_t key = static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to);
    const auto [place, added] = numbers_.try_emplace(key, static_cast<uint32_t>(made_.wires.size()));
    if (added) {
      Path path = network_.path(from, to);
      if (folded_) path.in = network_.onFirstHost(path.in);
      made_.wires.push_back({Wire::kNobody, Wire::kNobody, path});
    }
    return place->second;
  }

  const Network& network_;
  bool folded_;
  Wiring made_;
  std::unordered_map<uint64_t, uint32_t> numbers_;
};

bool peersOn(const std::vector<int>& first, const std::vector<int>& later, int ranksOn, int ranks) {
  return std::ranges::equal(first, later, [&](int a, int b) { return (a + ranksOn) % ranks == b; });
}

bool sameShape(const schedule::Step& a, const schedule::Step& b) {
  return a.fromBegin == b.fromBegin && a.toBegin == b.toBegin && a.fromCount == b.fromCount && a.toCount == b.toCount &&
         a.span == b.span && a.lag == b.lag && a.skip == b.skip;
}

}  // namespace

bool Wiring::complete() const noexcept {
  return std::ranges::all_of(
      wires, [](const Wire& wire) { return wire.sender != Wire::kNobody && wire.receiver != Wire::kNobody; });
}

Wiring wiringOf(std::span<const Schedule> schedules, const Network& network, bool folded) {
  Wirer wirer(network, folded);
  for (size_t i = 0; i < schedules.size(); ++i) wirer.add(schedules[i], static_cast<uint32_t>(i));
  return wirer.take();
}

bool sameButFor(const Schedule& first, const Schedule& later, int ranksOn) {
  return first.segments == later.segments && first.operands == later.operands &&
         peersOn(first.inPeers, later.inPeers, ranksOn, first.size) &&
         peersOn(first.outPeers, later.outPeers, ranksOn, first.size) &&
         std::ranges::equal(first.steps, later.steps, sameShape);
}

}  // namespace tutti::sim
