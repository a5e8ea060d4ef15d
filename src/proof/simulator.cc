#include "proof/simulator.h"

#include "proof/mix.h"

namespace tutti::proof {

Lengths Lengths::prefix(int rounds, uint32_t segments, uint32_t full, int last) {
  Lengths lengths(rounds);
  lengths.kind_ = full < segments ? Kind::kPrefix : Kind::kUniform;
  lengths.full_ = full;
  lengths.last_ = last;
  return lengths;
}

Lengths Lengths::random(int rounds, uint64_t seed) {
  Lengths lengths(rounds);
  lengths.kind_ = Kind::kRandom;
  lengths.seed_ = seed;
  return lengths;
}

int Lengths::of(const Schedule& schedule, const Step& step, uint32_t segment) const noexcept {
  if (kind_ == Kind::kUniform) return rounds_;
  if (kind_ == Kind::kPrefix) return segment < full_ ? rounds_ : segment == full_ ? last_ : 0;
  uint64_t key = segment;
  if (plainOf(schedule.collective) == Collective::kAllToAll) {
    const bool sends = schedule.from(step)[0].kind() == Operand::Kind::kInput;
    const auto self = static_cast<uint64_t>(schedule.rank);
    key = sends ? self << 32 | segment : uint64_t{segment} << 32 | self;
  }
  return static_cast<int>(mix(mix(key + 1) + seed_) % static_cast<uint64_t>(rounds_ + 1));
}

bool Lengths::any(const Schedule& schedule, const Step& step, int round) const noexcept {
  if (round >= rounds_) return false;
  if (kind_ == Kind::kUniform) return true;
  for (uint32_t i = 0; i < step.span; ++i) {
    if (round < of(schedule, step, (step.segment + i) % schedule.segments)) return true;
  }
  return false;
}

Wiring::Wiring(std::span<const Schedule> schedules) : in(schedules.size()), out(schedules.size()) {
  const size_t size = schedules.size();
  std::vector<std::vector<uint32_t>> arriving(size);
  for (size_t rank = 0; rank < size; ++rank) {
    for (int peer : schedules[rank].outPeers) {
      const auto link = static_cast<uint32_t>(links.size());
      links.push_back({static_cast<int>(rank), peer});
      out[rank].push_back(link);
      arriving[peer].push_back(link);
    }
  }
  std::vector<uint32_t> linkFrom(size);
  for (size_t rank = 0; rank < size; ++rank) {
    for (uint32_t link : arriving[rank]) linkFrom[links[link].sender] = link;
    for (int peer : schedules[rank].inPeers) in[rank].push_back(linkFrom[peer]);
  }
}

Simulator::Simulator(std::span<const Schedule> schedules, const Wiring& wiring, int depth, Lengths lengths)
    : schedules_(schedules),
      wiring_(wiring),
      depth_(static_cast<uint64_t>(depth)),
      lengths_(lengths),
      flows_(wiring.links.size()),
      lanes_(schedules.size()) {}

bool Simulator::canRun(int rank, const Step& step) noexcept {
  Lane& lane = lanes_[rank];
  const auto sources = schedules_[rank].from(step), destinations = schedules_[rank].to(step);
  lane.waitsFor = kNoLink;
  for (uint32_t& i = lane.readyOperands; i < sources.size() + destinations.size(); ++i) {
    const bool takes = i < sources.size();
    const Operand operand = takes ? sources[i] : destinations[i - sources.size()];
    if (!operand.isLink()) continue;
    const uint32_t link = (takes ? wiring_.in : wiring_.out)[rank][operand.index()];
    const uint64_t held = flows_[link].posted - flows_[link].taken;
    if (takes ? held > 0 : held < depth_) continue;
    lane.waitsFor = link;
    return false;
  }
  lane.readyOperands = 0;
  return true;
}

void Simulator::advance(int rank, const Step& step, std::vector<int>& ready) {
  const auto wake = [&](int peer, uint32_t link) {
    if (lanes_[peer].waitsFor != link) return;
    lanes_[peer].waitsFor = kNoLink;
    ready.push_back(peer);
  };
  for (Operand source : schedules_[rank].from(step)) {
    if (!source.isLink()) continue;
    const uint32_t link = wiring_.in[rank][source.index()];
    flows_[link].taken++;
    wake(wiring_.links[link].sender, link);
  }
  for (Operand destination : schedules_[rank].to(step)) {
    if (!destination.isLink()) continue;
    const uint32_t link = wiring_.out[rank][destination.index()];
    flows_[link].posted++;
    wake(wiring_.links[link].receiver, link);
  }
}

}  // namespace tutti::proof
