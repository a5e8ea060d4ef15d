#include "tune/model.h"

#include <algorithm>
#include <vector>

#include "plan/cost.h"
#include "plan/expected.h"
#include "team/cluster.h"
#include "topology/peer_info.h"

namespace tutti::tune {
namespace {

// As they would find themselves: threads of one process, or processes of one host.
std::vector<topology::PeerInfo> ranksOf(const std::string& transport, int ranks, uint32_t cores) {
  std::vector<topology::PeerInfo> infos(static_cast<size_t>(ranks), topology::describeSelf());
  for (size_t rank = 0; rank < infos.size(); ++rank) {
    infos[rank].cores = cores;
    if (transport != "p2p") infos[rank].processToken += rank;
  }
  return infos;
}

}  // namespace

Model::Model(const Sweep& sweep) : cores_(sweep.cores) {
  for (const Cell& cell : sweep.cells) {
    if (!transports_.contains(cell.transport))
      transports_.emplace(cell.transport, link::builtinTransports(cell.transport));
    machines_[{cell.transport, cell.ranks}] = {};
  }
  price({});
}

void Model::price(const plan::Profile& prices) {
  for (auto& [key, machine] : machines_) {
    const auto& [transport, ranks] = key;
    const auto infos = ranksOf(transport, ranks, cores_);
    machine = comm::machineOf(infos, comm::groupsOf(infos, 0), transports_.at(transport), prices);
  }
}

const plan::ClusterModel& Model::machineOf(const Cell& cell) const {
  return machines_.at({cell.transport, cell.ranks});
}

double Model::predictedUs(const Cell& cell, schedule::Algorithm algorithm) const {
  return plan::expectedUs(algorithm, cell.request(), machineOf(cell)) + barrierUs(cell);
}

double Model::barrierUs(const Cell& cell) const {
  if (!endsInBarrier(cell.collective)) return 0;
  return plan::predictUs(schedule::Algorithm::kTree, {Collective::kBarrier}, machineOf(cell));  // as -z 1 has it
}

// A call takes something, however wrong the prediction of the barrier is.
double Model::withoutBarrier(const Cell& cell, schedule::Algorithm algorithm) const {
  constexpr double kLeast = 0.1;
  const double us = cell.us(algorithm);
  return std::max(us - barrierUs(cell), kLeast * us);
}

plan::Place Model::placeOf(const Cell& cell) const {
  const plan::ClusterModel& machine = machineOf(cell);
  return {cell.transport, machine.ranks, machine.ranksPerCore};
}

schedule::Algorithm Model::choice(const Cell& cell) const {
  const plan::Plan plan = plan::choose(cell.request(), machineOf(cell), {}, 0);
  if (cell.times.contains(plan.best.algorithm)) return plan.best.algorithm;
  for (const plan::Choice& other : plan.others)
    if (cell.times.contains(other.algorithm)) return other.algorithm;
  return cell.times.begin()->first;
}

}  // namespace tutti::tune
