// What the ranks of a communicator tell each other before they make another one of it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "job/unique_id.h"
#include "team/team.h"
#include "wire/messages.h"

namespace tutti::comm {

// Which call they are in.
enum class Meeting : uint8_t { kSplit, kDuplicate, kGrow };

// Everyone's bytes at everyone, in rank order. Collective; `met` once they are. Throws Error: kInvalidUsage on all when
// they are in different calls, else as Plane::allGather().
std::vector<Bytes> meet(Team& team, Meeting call, std::span<const std::byte> mine, Deadline deadline,
                        const std::function<void()>& met = {});

// One rank's part in growing.
struct Growth {
  int ranks = 0;                         // of the new communicator
  std::optional<control::UniqueId> id;   // of one rank: where they meet those who join
  std::optional<std::string> secret;     // that was given beside the id
  std::optional<control::Refusal> lack;  // why this rank cannot grow
};

// The id at which these ranks meet those who join. Collective over them; `begun` when they have told each other. Throws
// Error: what it lacks on the rank that does, kRemote on the others, kInvalidUsage on all where their parts do not fit.
control::UniqueId meetToGrow(Team& team, const Growth& growth, Deadline deadline, const std::function<void()>& begun);

// With the secret that was given beside it.
control::UniqueId withBeside(control::UniqueId id, const Growth& growth, int rank);

// For those who join.
std::string notGrown(const Team& team, const std::exception& why);

}  // namespace tutti::comm
