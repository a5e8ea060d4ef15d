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
               const link::Fingerprint& callThere, uint64_t tag) {
  const bool known = callHere.planned() && callThere.planned() && callHere != callThere;
  const bool oneCall = known && callHere.call() == callThere.call();
  if (!oneCall) {
    const std::string mine = describe(callHere, tag), theirs = describe(callThere, tag);
    return mismatch(here, mine, there,
                    mine == theirs ? theirs + " with other counts for the ranks, or another tag" : theirs);
  }
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("the ranks run {} in different ways: {} by {}, {} by {}. TUTTI_ALGO, TUTTI_CHANNELS and "
                           "TUTTI_GROUP_SIZE, and what the configuration says in their place, must be the same on "
                           "every rank",
                           describe(callHere, tag), here, describePlan(callHere), there, describePlan(callThere)));
}

Error tagMismatch(const std::string& call, const std::string& here, uint64_t mine, const std::string& there,
                  std::optional<uint64_t> theirs) {
  const auto said = [](uint64_t tag) { return tag == 0 ? std::string("no tag") : fmt::format("the tag {}", tag); };
  const std::string other = theirs ? said(*theirs) : mine == 0 ? "one" : "another one";
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("the tags of {} differ: {} gave it {}, {} gave it {}. The tag of a call (tuttiCallConfig_t) "
                           "must be the same on every rank",
                           call, here, said(mine), there, other));
}

Error persistenceMismatch(const std::string& call, const std::string& readies, const std::string& runs) {
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("the ranks differ in whether {} is persistent: {} has made it ready, {} runs it. A call has "
                           "TUTTI_CALL_PERSISTENT (tuttiCallConfig_t) on every rank or on none",
                           call, readies, runs));
}

// Where a tag is mixed in, a call without a root has nothing else, and one with a root a rank; the counts of a
// v-variant can be any number.
bool hasOtherTag(const link::Fingerprint& same, int ranks) {
  const auto collective = collectiveOf(same);
  if (hasRoot(collective)) return same.root >= ranks;
  return collective != Collective::kAllGatherV && collective != Collective::kReduceScatterV && same.root != 0;
}

namespace {

// What differs by the tag, where that is all.
std::optional<Error> tagAlone(const Team& team, const link::Fingerprint& mine, uint64_t tag, int peer,
                              const link::Fingerprint& theirs) {
  const bool untagged = tag != 0 && theirs.call() == mine.call();
  link::Fingerprint rest = theirs.call();
  rest.root = mine.root;
  if (!untagged && (rest != mine.call() || !hasOtherTag(tagged(theirs, tag), team.size()))) return std::nullopt;
  return tagMismatch(describe(mine), team.rankName(team.rank()), tag, team.rankName(peer),
                     untagged ? std::optional<uint64_t>(0) : std::nullopt);
}

}  // namespace

// The slot may be left over from an earlier collective of the peer's: what does not match is then ours of that number.
Error disagreement(const Team& team, link::Fingerprint mine, uint64_t tag, int peer, const link::Fingerprint& theirs,
                   uint64_t bytes) {
  const bool isMessage = collectiveOf(mine) == Collective::kSendRecv;
  bool onlyReadied = false;
  if (!isMessage && theirs.operation != mine.operation)
    if (const auto same = team.recorder().collective(theirs.operation))
      mine = same->fingerprint, tag = same->tag, onlyReadied = same->onlyReadies;
  if (auto tags = tagAlone(team, mine, tag, peer, theirs)) return *tags;
  const std::string self = team.rankName(team.rank());
  if (const auto plain = tagged(theirs, tag); mine != plain)
    return mismatch(self, mine, team.rankName(peer), plain, tag);
  if (onlyReadied) return persistenceMismatch(describe(mine, tag), self, team.rankName(peer));
  return Error(ErrorCode::kInvalidUsage,
               fmt::format("counts do not match in {}: {} sent {} bytes more than {} expected", describe(mine, tag),
                           team.rankName(peer), bytes, self));
}

}  // namespace tutti::comm
