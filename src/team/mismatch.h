// What is said of calls of two ranks that do not match. The same text goes to both.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"
#include "team/call.h"
#include "team/team.h"

namespace tutti::comm {

Error mismatch(const std::string& here, const std::string& callHere, const std::string& there,
               const std::string& callThere);
// The same for collectives; of one call that the two ranks run in different ways, what these are.
Error mismatch(const std::string& here, const link::Fingerprint& callHere, const std::string& there,
               const link::Fingerprint& callThere);
// Where this rank was in `mine`, a slot of `bytes` from the peer came that belongs to `theirs`.
Error disagreement(const Team& team, link::Fingerprint mine, int peer, const link::Fingerprint& theirs, uint64_t bytes);

}  // namespace tutti::comm
