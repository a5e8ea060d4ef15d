#include "team/mismatch.h"

#include <fmt/format.h>

namespace tutti::comm {

Error mismatch(const std::string& here, const std::string& callHere, const std::string& there,
               const std::string& callThere) {
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("calls do not match: {} is in {}, {} is in {}. All ranks must make the same calls, with the "
                           "same counts, types, operators and roots, in the same order",
                           here, callHere, there, callThere));
}

Error mismatch(const std::string& here, const link::Fingerprint& callHere, const std::string& there,
               const link::Fingerprint& callThere) {
  const bool known = callHere.planned() && callThere.planned() && callHere != callThere;
  const bool oneCall = known && callHere.call() == callThere.call();
  if (!oneCall) {
    const std::string mine = describe(callHere), theirs = describe(callThere);
    return mismatch(here, mine, there, mine == theirs ? theirs + " with other counts for the ranks" : theirs);
  }
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("the ranks run {} in different ways: {} by {}, {} by {}. TUTTI_ALGO, TUTTI_CHANNELS and "
                           "TUTTI_GROUP_SIZE, and what the configuration says in their place, must be the same on "
                           "every rank",
                           describe(callHere), here, describePlan(callHere), there, describePlan(callThere)));
}

// The slot may be left over from an earlier collective of the peer's: what does not match is then ours of that number.
Error disagreement(const Team& team, link::Fingerprint mine, int peer, const link::Fingerprint& theirs,
                   uint64_t bytes) {
  const bool isMessage = static_cast<Collective>(mine.kindAndType >> 4) == Collective::kSendRecv;
  if (!isMessage && theirs.operation != mine.operation)
    if (const auto same = team.recorder().collective(theirs.operation)) mine = same->fingerprint;
  const std::string self = team.rankName(team.rank());
  if (mine != theirs) return mismatch(self, mine, team.rankName(peer), theirs);
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("counts do not match in {}: {} sent {} bytes more than {} expected", describe(mine),
                           team.rankName(peer), bytes, self));
}

}  // namespace tutti::comm
