// Whether one thing takes more than kNear times what another takes, by times of both that were measured in turn: a sign
// test. It asks the median of the ratios, of which no distribution has to be known, and goes on as long as noise could
// have decided.
#pragma once
#include <array>
#include <cstddef>
#include <span>

namespace tutti::tune {

enum class Verdict { kWithin, kMissed, kOpen };

// After so many rounds the ratios are looked at. Few looks, as each could go wrong.
inline constexpr std::array<size_t, 8> kLooks = {10, 15, 22, 33, 50, 75, 110, 160};
// Probability that at one look the median is on the other side of a bound: 5 % for both sides of all looks together.
// Nine rounds that are all on one side would be enough (1/512).
inline constexpr double kErrorAtALook = 0.05 / 2 / kLooks.size();

// Where the median of the ratios lies but for kErrorAtALook on each side; `median` is that of those at hand.
struct Interval {
  double low = 0, median = 0, high = 0;
};
// By order statistics (a binomial distribution). From zero to infinity where there are too few. `ratios`: one at least.
Interval medianOf(std::span<const double> ratios);

// kWithin: not more than `limit`; kOpen: it could be either.
Verdict judged(const Interval& median, double limit) noexcept;

}  // namespace tutti::tune
