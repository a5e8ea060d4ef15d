#include "control/remedies.h"

#include <fmt/format.h>

namespace tutti::control {
namespace {

constexpr const char* kSecretNames = "TUTTI_SECRET (or TUTTI_SECRET_FILE)";

}  // namespace

// Who comes too late finds nobody, and cannot tell that from a wrong address.
std::string whenNobodyIsThere(const UniqueId& id) {
  if (id.place.empty())
    return "A unique id is good for one communicator, and has expired when the process that made it has ended or "
           "TUTTI_JOIN_TIMEOUT_MS there is over: make a new one, or set the variable higher before it is made";
  std::string text = fmt::format("The ranks meet {}: see whether rank 0 runs", id.place);
  if (!id.alike.empty()) text += fmt::format(", and whether all ranks have the same {}", id.alike);
  return text;
}

std::string whenTheSecretDiffers(const UniqueId& id) {
  if (id.place.empty()) return "give all ranks the same unique id, made for this communicator";
  if (id.alike.empty()) return "its root has gone, and the ranks that it waited for have come or given up";
  return fmt::format("set the same {} on all ranks, and {} written alike", kSecretNames, id.alike);
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
