// TUTTI_PREFLIGHT: what hosts lack, told before the first call runs.
#pragma once
#include "net/network.h"
#include "team/team.h"

namespace tutti::comm {

// Whether this process may still ask for it: it has made no communicator that looked.
bool mayLookAtHosts();

// Where any rank's card asks for it (topology::PeerInfo::wantsPreflight): the first rank of each host tells rank 0 what
// the host has; rank 0 waits ten seconds at most, nobody else does, and warns of what it finds. `network`: with which
// it was joined. Reads nothing of the environment. Fails nothing: what goes wrong is told as well.
void lookAtHosts(Team& team, const Network& network) noexcept;

}  // namespace tutti::comm
