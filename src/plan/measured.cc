#include "plan/measured.h"

#include <algorithm>

namespace tutti::plan {
namespace {

// Ratios, not logarithms: ranks on unlike processors must find the same, to the bit.
double ratio(double a, double b) noexcept { return a > b ? a / b : b / a; }

double distance(const Place& a, const Place& b) noexcept {
  return ratio(a.ranks, b.ranks) * ratio(a.ranksPerCore, b.ranksPerCore);
}

constexpr double kFar = 4;

}  // namespace

Measurements::Measurements(std::vector<Series> series)
    : series_(series.empty() ? nullptr : std::make_shared<const std::vector<Series>>(std::move(series))) {}

std::span<const Series> Measurements::series() const noexcept {
  return series_ ? std::span<const Series>(*series_) : std::span<const Series>();
}

const Series* Measurements::nearest(Collective collective, schedule::Algorithm algorithm,
                                    const Place& place) const noexcept {
  const Series* best = nullptr;
  for (const Series& one : series()) {
    if (one.collective != collective || one.algorithm != algorithm || one.transport != place.transport) continue;
    if (distance(one.place(), place) > kFar) continue;
    if (best == nullptr || distance(one.place(), place) < distance(best->place(), place)) best = &one;
  }
  return best;
}

}  // namespace tutti::plan
