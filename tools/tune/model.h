// What the library would choose on a sweep's machine, and predict, by prices that are tried.
#pragma once
#include <map>
#include <string>
#include <utility>

#include "link/registry.h"
#include "plan/plan.h"
#include "tune/sweep.h"

namespace tutti::tune {

class Model {
 public:
  // Of the ranks and transports of all its cells.
  explicit Model(const Sweep& sweep);
  // All questions from here on are by these.
  void price(const plan::Profile& prices);

  // With the barrier behind it, where it was measured with one.
  double predictedUs(const Cell& cell, schedule::Algorithm algorithm) const;
  // Among those that were measured.
  schedule::Algorithm choice(const Cell& cell) const;

 private:
  const plan::ClusterModel& machineOf(const Cell& cell) const;

  std::map<std::string, link::Registry> transports_;
  const uint32_t cores_;
  std::map<std::pair<std::string, int>, plan::ClusterModel> machines_;  // by transport and ranks
};

}  // namespace tutti::tune
