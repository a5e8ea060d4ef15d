#include "plan/expected.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/cost.h"

namespace tutti::plan {
namespace {

// The binary logarithm, with straight lines between powers of two. Exact arithmetic: those of math libraries differ
// from one processor to another.
double roughLog2(double x) noexcept {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // 0.5 to 1
  return exponent + 2 * fraction;
}

// 0 at the one, 1 at the other.
double between(size_t low, size_t high, size_t bytes) noexcept {
  const double start = roughLog2(double(low));
  return (roughLog2(double(bytes)) - start) / (roughLog2(double(high)) - start);
}

// Measurements were made on one host, where all links are alike, and of algorithms that make no stages there: of one
// that does, among cores, the first stage's stands for it.
const Series* seriesFor(schedule::Algorithm algorithm, const Request& request, const ClusterModel& machine) {
  if (machine.hosts > 1) return nullptr;
  const schedule::Request plain{plainOf(request.collective), request.bytes};
  std::array<schedule::Stage, 2> stages;
  const auto split = schedule::rowOf(algorithm).stages;
  if (split != nullptr && split(plain, machine, stages)) algorithm = stages[0].algorithm;
  return machine.prices.measured.nearest(plain.collective, algorithm,
                                         {machine.localOver, machine.ranks, machine.ranksPerCore});
}

// By what measurement number i exceeds its own prediction.
double factorAt(const Series& series, size_t i, const ClusterModel& machine) {
  ClusterModel measured = machine;
  measured.ranks = measured.ranksPerHost = series.ranks;
  measured.ranksPerCore = series.ranksPerCore;
  const double predicted = predictUs(series.algorithm, {series.collective, series.bytes[i]}, measured);
  return predicted > 0 ? series.us[i] / predicted : 1;
}

double factorFor(const Series& series, size_t bytes, const ClusterModel& machine) {
  const auto above = std::ranges::upper_bound(series.bytes, bytes);
  const auto next = static_cast<size_t>(above - series.bytes.begin());
  if (next == 0) return factorAt(series, 0, machine);
  if (next == series.bytes.size()) return factorAt(series, next - 1, machine);
  const double part = between(series.bytes[next - 1], series.bytes[next], bytes);
  return (1 - part) * factorAt(series, next - 1, machine) + part * factorAt(series, next, machine);
}

}  // namespace

double expectedUs(schedule::Algorithm algorithm, const Request& request, const ClusterModel& machine) {
  const double predicted = predictUs(algorithm, request, machine);
  const Series* series = seriesFor(algorithm, request, machine);
  return series == nullptr ? predicted : predicted * factorFor(*series, request.bytes, machine);
}

}  // namespace tutti::plan
