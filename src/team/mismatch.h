// What is said of calls of two ranks that do not match. The same text goes to both.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "team/call.h"
#include "team/team.h"

namespace tutti::comm {

Error mismatch(const std::string& here, const std::string& callHere, const std::string& there,
               const std::string& callThere);
// The same for collectives; of one call that the two ranks run in different ways, what these are. No tag is in the
// fingerprints.
Error mismatch(const std::string& here, const link::Fingerprint& callHere, const std::string& there,
               const link::Fingerprint& callThere, uint64_t tag = 0);
// One call, to which the two gave different tags. `theirs`: nullopt where it is not known.
Error tagMismatch(const std::string& call, const std::string& here, uint64_t mine, const std::string& there,
                  std::optional<uint64_t> theirs);
// One call, which `readies` made ready to be started, and the other rank runs.
Error persistenceMismatch(const std::string& call, const std::string& readies, const std::string& runs);
// Whether a fingerprint that came with a slot is of a call with another tag, as far as it shows. `same` is what it is
// if the tag is the same.
bool hasOtherTag(const link::Fingerprint& same, int ranks);
// Where this rank was in `mine`, which has this tag, a slot of `bytes` from the peer came that belongs to `theirs`,
// with its tag in it.
Error disagreement(const Team& team, link::Fingerprint mine, uint64_t tag, int peer, const link::Fingerprint& theirs,
                   uint64_t bytes);

}  // namespace tutti::comm
