#include "job/ranks.h"

#include <fmt/format.h>

namespace tutti::control {

std::optional<std::string> wrongPlace(int rank, int size) {
  if (size < 1 || size > kMaxRanks) return fmt::format("there can be 1 to {} ranks", kMaxRanks);
  if (rank < 0 || rank >= size) return fmt::format("ranks go from 0 to {}", size - 1);
  return std::nullopt;
}

}  // namespace tutti::control
