#include "topology/speeds.h"

#include <charconv>
#include <cmath>

namespace tutti::topology {
namespace {

// A lane's share of a link of 80 of them; so x16 of the third generation is 12 GB/s.
struct Generation {
  double transfers;
  int perLane;
};
constexpr Generation kGenerations[] = {{2.5, 15}, {5, 30}, {8, 60}, {16, 120}, {32, 240}, {64, 480}};
constexpr double kLanes = 80;

struct SmRow {
  int sm;
  double gigabytes;
};
constexpr SmRow kNvLinks[] = {{100, 40.1}, {90, 20.6}, {87, 20}, {86, 12}, {70, 20}, {60, 18}};

constexpr double kNetworkPer100Gigabits = 12;

double intel(int family, int model) {
  if (family != 6) return 6;
  if (model >= 207) return 40;  // Emerald Rapids
  if (model >= 143) return 22;  // Sapphire Rapids
  return model >= 85 ? 10 : 6;  // Skylake; Broadwell and what was before
}

}  // namespace

std::optional<double> transfersOf(std::string_view speed) {
  double value = 0;
  const auto [end, error] = std::from_chars(speed.data(), speed.data() + speed.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
  const std::string_view unit = speed.substr(static_cast<size_t>(end - speed.data()));
  return unit.empty() || unit.starts_with(" GT/s") ? std::optional(value) : std::nullopt;
}

std::optional<double> pciGigabytes(double transfers, int width) {
  for (const Generation& one : kGenerations)
    if (transfers == one.transfers) return width * one.perLane / kLanes;
  return std::nullopt;
}

double nvlinkGigabytes(int sm) {
  for (const SmRow& row : kNvLinks)
    if (sm >= row.sm) return row.gigabytes;
  return kNvLinks[std::size(kNvLinks) - 1].gigabytes;
}

std::optional<double> socketGigabytes(const Numa& numa) {
  if (numa.arch == "ppc64") return 32;
  if (numa.arch == "arm64") return 6;
  if (numa.vendor == "GenuineIntel") return intel(numa.family, numa.model);
  if (numa.vendor == "AuthenticAMD") return 16;
  // Zhaoxin: the second number is Yongfeng's.
  if (numa.vendor == "CentaurHauls" || numa.vendor == "  Shanghai  ")
    return numa.family == 7 && numa.model == 0x5b ? 9 : 6;
  return std::nullopt;
}

double networkGigabytes(int64_t megabits) { return static_cast<double>(megabits) / 100'000 * kNetworkPer100Gigabits; }

}  // namespace tutti::topology
