// From what the launcher said to a unique id.
#pragma once
#include <optional>
#include <string>

#include "job/unique_id.h"
#include "launch/bounded_wait.h"
#include "launch/launch.h"
#include "net/network.h"

namespace tutti::control {

// The unique id to join with: the one handed over (a file is waited for), one that rank 0 hands out through the process
// manager, or one that every rank derives from the place, the job key and the secret. In the last two rank 0 opens the
// root. Throws Error, soon after the caller has lost interest; but a look-up of a host's name, which nothing can
// interrupt, is waited for.
// Where it is an id, the secret's text, if there is one, becomes a part of it (UniqueId::beside).
// That root lives until `rootsEnd`, for those who come later than `patience` lasts; or as long as that.
UniqueId meetingPlace(const LaunchInfo& launch, const Network& network, const BoundedWait& patience, Deadline rootsEnd);
UniqueId meetingPlace(const LaunchInfo& launch, const Network& network, const BoundedWait& patience);

// The same for an id that the program was handed: `secret` as readSecret() gives it. Throws Error(kSystem) when there
// is no memory to make a key of it.
UniqueId withSecret(UniqueId id, const std::optional<std::string>& secret, int rank);

}  // namespace tutti::control
