#include "diagnose/neighbours.h"

#include <algorithm>

#include "process/process_object.h"

namespace tutti::comm {

Neighbours& Neighbours::instance() { return ofThisProcess<Neighbours>(); }

void Neighbours::add(const std::shared_ptr<const Team>& team) {
  std::lock_guard lock(mutex_);
  std::erase_if(members_, [](const Neighbour& member) { return member.team.expired(); });
  members_.push_back({team->id(), team->rank(), team->sharedRecorder(), team});
}

std::optional<Elsewhere> Neighbours::elsewhere(const Recorder& recorder) {
  std::lock_guard lock(mutex_);
  const auto self = std::ranges::find_if(
      members_, [&](const Neighbour& member) { return member.recorder.lock().get() == &recorder; });
  if (self == members_.end()) return std::nullopt;
  for (const Neighbour& member : members_) {
    const auto other = member.recorder.lock();
    if (!other || member.id == self->id || other->caller() != recorder.caller()) continue;
    if (const auto stuck = other->stuck()) return Elsewhere{member.id, member.rank, {stuck->line, positionOf(*stuck)}};
  }
  return std::nullopt;
}

std::shared_ptr<const Team> Neighbours::owing(const Elsewhere& there) {
  const auto& [line, position] = there.stuck;
  const CallLine needed = counterpartOf(line);
  const int peer = needed == CallLine::kCollective ? -1 : there.rank;
  std::lock_guard lock(mutex_);
  for (const Neighbour& member : members_) {
    if (member.id != there.communicator || member.rank != position.waitingFor) continue;
    const auto recorder = member.recorder.lock();
    if (recorder && recorder->caller() == thisCaller() && !recorder->begun(needed, peer, position.call.operation))
      return member.team.lock();
  }
  return nullptr;
}

}  // namespace tutti::comm
