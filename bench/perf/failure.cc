#include "perf/failure.h"

#include <fmt/format.h>

namespace tutti::perf {

void require(tuttiResult_t result, const char* call, int rank, tuttiComm_t comm) {
  if (result == tuttiSuccess) return;
  std::string words = tuttiGetLastError(comm);
  if (words.empty() && comm != nullptr) words = tuttiGetLastError(nullptr);
  const std::string who = rank < 0 ? std::string("this process") : fmt::format("rank {}", rank);
  throw Failure(
      fmt::format("{}: {}: {}{}{}", who, call, tuttiGetErrorString(result), words.empty() ? "" : ": ", words));
}

}  // namespace tutti::perf
