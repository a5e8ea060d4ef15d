// Times that were measured on a kind of machine, by which predictions for it are corrected.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "schedule/schedule.h"

namespace tutti::plan {

// Ranks of one host, as far as what was measured for some of them says something about others.
struct Place {
  std::string_view transport;  // between them: "p2p", "shm", "tcp"
  int ranks = 1;
  double ranksPerCore = 1;  // 1 at least
};

// One operation under one algorithm, by size.
struct Series {
  Collective collective = Collective::kAllReduce;
  schedule::Algorithm algorithm = schedule::Algorithm::kRing;
  std::string transport;
  int ranks = 2;
  double ranksPerCore = 1;
  std::vector<size_t> bytes;  // as schedule::Request has them, ascending
  std::vector<double> us;     // of a call of so many bytes
  friend bool operator==(const Series&, const Series&) = default;

  Place place() const noexcept { return {transport, ranks, ranksPerCore}; }
};

// A value, whose copies share what they hold.
class Measurements {
 public:
  Measurements() = default;
  explicit Measurements(std::vector<Series> series);

  std::span<const Series> series() const noexcept;
  // That of the place that is most like this one; null where none is within a factor of 4, those of the number of ranks
  // and of ranks a core multiplied.
  const Series* nearest(Collective collective, schedule::Algorithm algorithm, const Place& place) const noexcept;

  friend bool operator==(const Measurements& a, const Measurements& b) {
    return std::ranges::equal(a.series(), b.series());
  }

 private:
  std::shared_ptr<const std::vector<Series>> series_;
};

}  // namespace tutti::plan
