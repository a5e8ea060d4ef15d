// What the leader of a split tells all ranks: where those of one colour meet, and, for each of them alone, the secret
// that its root has drawn.
#pragma once
#include <span>

#include "base/bytes.h"
#include "job/unique_id.h"
#include "net/noise.h"

namespace tutti::control {

// `keys`: the members', in their order; `id` goes without its secret, `drawn` stands in the parcels.
Bytes invite(const UniqueId& id, const Secret& drawn, std::span<const noise::Key> keys, const noise::KeyPair& from);
// What the one at `place` among the members reads in it: the id with the drawn secret. Throws Error(kRemote) when it is
// none, or not from that leader for this one.
UniqueId invitationOf(std::span<const std::byte> told, size_t place, const noise::Key& leader,
                      const noise::KeyPair& own);

}  // namespace tutti::control
