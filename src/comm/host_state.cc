#include "comm/host_state.h"

#include <algorithm>

#include "team/cluster.h"

namespace tutti::comm {
namespace {

Plans plansFor(Team& team, Links& links, engine::Crowd& crowd) {
  const auto groups = groupsOf(team.infos(), team.config().groupSize);
  auto machine = machineOf(team.infos(), groups, team.registry(), team.config().prices);
  auto placement = placementOf(team.infos(), groups, machine);
  if (team.config().groupSize != 0) placement.coreOf.clear();  // somebody knows better
  machine.cores = placement.cores();
  return Plans(team.rank(), team.size(), team.config(), machine, std::move(placement), links, crowd);
}

}  // namespace

HostState::HostState(Team& team)
    : team_(team),
      links_(team.plane(), team.registry(), team.infos(), team.config().connectTimeout),
      crowd_(team.ranksPerCore()),
      plans_(plansFor(team, links_, crowd_)),
      sends_(static_cast<size_t>(team.size())),
      receives_(sends_.size()),
      trace_(Trace::of(team)) {}

bool HostState::idle() const noexcept {
  const auto isIdle = [](const TicketQueue& queue) { return queue.idle(); };
  return collectives_.idle() && std::ranges::all_of(sends_, isIdle) && std::ranges::all_of(receives_, isIdle);
}

uint64_t HostState::operations() const noexcept {
  uint64_t passed = collectives_.passed();
  for (const auto* list : {&sends_, &receives_})
    for (const TicketQueue& queue : *list) passed += queue.passed();
  return passed;
}

}  // namespace tutti::comm
