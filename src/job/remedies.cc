#include "job/remedies.h"

#include <fmt/format.h>
#include <unistd.h>

namespace tutti::control {
namespace {

// What follows "the same" where ranks meet that were not handed an id.
std::string whatIsAlike(const UniqueId& id) {
  return id.ofOneUser ? fmt::format("{} and user (this one: {})", id.alike, ::geteuid()) : id.alike;
}

}  // namespace

// Who comes too late finds nobody, and cannot tell that from a wrong address.
std::string whenNobodyIsThere(const UniqueId& id) {
  if (id.place.empty())
    return "A unique id is good for one communicator, and has expired when the process that made it has ended or "
           "TUTTI_JOIN_TIMEOUT_MS there is over: make a new one, or set the variable higher before it is made";
  std::string text = fmt::format("The ranks meet {}: see whether rank 0 runs", id.place);
  if (!id.alike.empty()) text += fmt::format(", and whether all ranks have the same {}", whatIsAlike(id));
  return text;
}

std::string lookForThem(const UniqueId& id) {
  std::string text = "Look for their processes, and whether they reach the root";
  if (!id.place.empty()) text += fmt::format(": the ranks meet {}", id.place);
  if (!id.alike.empty()) text += fmt::format(", with the same {}", whatIsAlike(id));
  return text;
}

std::string whenTwoAreOneRank(const UniqueId& id) {
  return std::string("Give each its own number") +
         (id.alike.empty() ? "" : "; or, if they are of two jobs, each job a TUTTI_JOB of its own, any text");
}

// No names are made of the secret, but of the user. Who does not know the secret is hung up on, and so is whoever calls
// something that has never heard of tutti; at a Unix socket of the job's name nothing else listens.
std::string whatDiffers(const UniqueId& id) {
  const char* const orElse = id.addresses.empty() ? "" : ", or what listens there is not tutti";
  if (id.alike.empty()) return std::string("another job answers where the root should be") + orElse;
  const bool oneUser = id.ofOneUser && !id.addresses.empty();
  return std::string(oneUser ? "the secret or the user differs" : "the secret differs") + orElse;
}

std::string seeWhoListens(const UniqueId& id) {
  return id.addresses.empty()
             ? ""
             : "see first what listens there (`ss -ltnp` on that host); if it is a process of this job, ";
}

std::string whenTheSecretDiffers(const UniqueId& id) {
  if (id.place.empty()) return "give all ranks the same unique id, made for this communicator";
  if (id.alike.empty()) return "its root has gone, and the ranks that it waited for have come or given up";
  return fmt::format("set the same {} on all ranks, and to the letter the same {}", kSecretNames, whatIsAlike(id));
}

std::string rootProcess(const UniqueId& id) {
  return id.place.empty() ? "the process that made the unique id" : "the process where the ranks meet";
}

std::string rootIsOver(const UniqueId& id) {
  return id.place.empty()
             ? "the root's time is over, and its unique id has expired (TUTTI_JOIN_TIMEOUT_MS where it was "
               "made)"
             : "the root's time is over (TUTTI_JOIN_TIMEOUT_MS on rank 0)";
}

}  // namespace tutti::control
