#include "tune/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace tutti::tune {
namespace {

// Of n throws of a coin at most so many are heads, but for kErrorAtALook: how many values may lie outside of a bound;
// -1 where even none may be chance.
int spareOf(size_t n) {
  const double whole = std::ldexp(1.0, static_cast<int>(n));
  double ways = 1, sum = 1;  // for no heads
  int spare = -1;
  while (sum / whole <= kErrorAtALook) {
    ++spare;
    ways = ways * static_cast<double>(n - static_cast<size_t>(spare)) / (spare + 1);
    sum += ways;
  }
  return spare;
}

}  // namespace

Interval medianOf(std::span<const double> ratios) {
  std::vector<double> sorted(ratios.begin(), ratios.end());
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  const int spare = spareOf(n);
  if (spare < 0) return {0, median, std::numeric_limits<double>::infinity()};
  return {sorted[static_cast<size_t>(spare)], median, sorted[n - 1 - static_cast<size_t>(spare)]};
}

Verdict judged(const Interval& median, double limit) noexcept {
  if (median.high <= limit) return Verdict::kWithin;
  return median.low > limit ? Verdict::kMissed : Verdict::kOpen;
}

}  // namespace tutti::tune
