#include "tune/amend.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace tutti::tune {
namespace {

// What the choice takes by its bouts; 0: no opponent was faster.
double usOf(const Cell& cell, const Outcome& outcome) {
  double us = 0;
  for (const Bout& bout : outcome.bouts) {
    const double ratio = medianOf(bout.ratios).median;
    if (ratio > 1 && cell.times.contains(bout.contender)) us = std::max(us, ratio * cell.us(bout.contender));
  }
  return us;
}

void amend(Cell& cell, const Outcome& outcome) {
  const auto times = cell.times.find(outcome.choice);
  const double us = usOf(cell, outcome);
  if (times == cell.times.end() || us <= 0) return;
  const double factor = us / cell.us(outcome.choice);
  for (double& round : times->second) round *= factor;
}

bool isAbout(const Outcome& outcome, const Cell& cell) {
  return outcome.collective == cell.collective && outcome.transport == cell.transport && outcome.ranks == cell.ranks &&
         outcome.bytes == cell.bytes;
}

}  // namespace

std::vector<Outcome> readOutcomes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || !file)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: cannot be read", path));
  std::vector<Outcome> outcomes;
  for (std::string line; std::getline(file, line);) {
    try {
      outcomes.push_back(outcomeFrom(line));
    } catch (const Error& error) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: line {}: {}", path, outcomes.size() + 1, error.what()));
    }
  }
  if (outcomes.empty()) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: is empty: no cell was judged", path));
  return outcomes;
}

bool amend(Sweep& sweep, const std::vector<Outcome>& outcomes) {
  bool any = false;
  for (Cell& cell : sweep.cells)
    for (const Outcome& outcome : outcomes)
      if (isAbout(outcome, cell)) amend(cell, outcome), any = true;
  return any;
}

}  // namespace tutti::tune
