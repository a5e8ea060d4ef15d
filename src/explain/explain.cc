#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "base/error.h"
#include "plan/plan.h"
#include "sim/message.h"
#include "topology/warnings.h"

namespace tutti::explain {

using topology::DeviceKind;
using topology::PathType;
using topology::System;

namespace {

constexpr int kMostChannels = 32;  // of a communicator on GPUs

Candidate candidateOf(const Question& question, int ranks, schedule::Algorithm algorithm, int channels, double us) {
  const double rate = us > 0 ? static_cast<double>(question.bytes) / (us * 1e3) : 0;
  return {algorithm, {}, channels, us, 0, rate * sim::busFactor(question.collective, ranks)};
}

void weighGpus(Answer& answer, const Question& question) {
  const int ranks = answer.cluster.ranks();
  const plan::DevicePlan plan = weighDevice(
      {question.collective, schedule::requestBytes(question.collective, question.bytes, ranks)},
      deviceMachineOf(answer.cluster, answer.among), question.algorithm, question.protocol, question.channels);
  const auto add = [&](const plan::DeviceChoice& one) {
    answer.candidates.push_back(candidateOf(question, ranks, one.algorithm, one.channels, one.predictedUs));
    answer.candidates.back().protocol = one.protocol;
  };
  add(plan.best);
  for (const plan::DeviceChoice& one : plan.others) add(one);
  answer.excluded = plan.excluded;
}

plan::ClusterModel hostModelOf(const System& system, const sim::Cluster& cluster, const Question& question) {
  plan::ClusterModel model;
  model.prices = question.prices;
  model.ranks = cluster.ranks(), model.hosts = cluster.hosts, model.ranksPerHost = cluster.ranksPerHost;
  int units = 0;
  for (const int node : devicesOf(system, DeviceKind::kNuma)) units += processingUnitsOf(*system.devices[node].numa);
  if (units > 0) model.ranksPerCore = std::max(1.0, double(cluster.ranksPerHost) / units);
  const plan::LinkCost* local = plan::linkOf(model.prices, question.transport, true);
  if (local == nullptr)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no transport '{}' joins ranks of one node: choose p2p, shm or tcp", question.transport));
  model.local = *local, model.localOver = question.transport;
  model.remote = model.prices.tcpNetwork;
  return model;
}

void weighHosts(Answer& answer, const System& system, const Question& question) {
  const int ranks = answer.cluster.ranks();
  const plan::Plan plan =
      plan::choose({question.collective, schedule::requestBytes(question.collective, question.bytes, ranks)},
                   hostModelOf(system, answer.cluster, question), question.algorithm, question.channels);
  const auto add = [&](const plan::Choice& one) {
    answer.candidates.push_back(candidateOf(question, ranks, one.algorithm, one.channels, one.predictedUs));
    answer.candidates.back().setUpUs = one.setUpUs;
  };
  add(plan.best);
  for (const plan::Choice& one : plan.others) add(one);
  answer.excluded = plan.excluded;
}

Way wayOfGpus(const Answer& answer) {
  const PathType among = answer.among;
  const double gigabytes = answer.cluster.portGBs;
  if (among <= PathType::kNvLink)
    return {"GPUs of a node", fmt::format("p2p: kernels store over NVLink ({})", nameOf(among)), gigabytes, ""};
  if (among == PathType::kNvLinkRelayed)
    return {"GPUs of a node", "p2p: over NVLink where it is direct, else over PCIe", gigabytes,
            "some pairs have no NVLink of their own (NVB)"};
  return {"GPUs of a node",
          fmt::format("p2p: kernels store over PCIe ({}) where the driver lets them, else shm through host memory",
                      nameOf(among)),
          gigabytes, "NVLink does not join all of these GPUs"};
}

// Of one rank, where as many as can be use the same NIC. A cluster of GPUs says which each has.
double networkGBs(const sim::Cluster& cluster) {
  double least = std::numeric_limits<double>::infinity();
  for (const int nic : cluster.nicOf)
    least = std::min(least, cluster.nics[nic].gbs / double(std::ranges::count(cluster.nicOf, nic)));
  return least;
}

// What is predicted on cores is for TCP as the profile has it; on GPUs, for what the NICs carry.
Way wayBetweenNodes(const Answer& answer, const Question& question) {
  const char* const why = "RDMA (InfiniBand, RoCE) is no transport of this version";
  if (!answer.onGpus) return {"ranks of different nodes", "tcp", question.prices.tcpNetwork.bandwidthGBs, why};
  return {"ranks of different nodes", "tcp, through pinned host memory, by Simple only", networkGBs(answer.cluster),
          fmt::format("{}; the prediction is for what the NICs carry", why)};
}

Way wayOfCores(const Question& question) {
  const plan::LinkCost& link = *plan::linkOf(question.prices, question.transport, true);
  if (question.transport == "p2p") return {"ranks of a node", "p2p: threads of one process", link.bandwidthGBs, ""};
  if (question.transport == "shm")
    return {"ranks of a node", "shm: memory that both processes map", link.bandwidthGBs,
            "p2p is for threads of one process"};
  return {"ranks of a node", "tcp, over loopback", link.bandwidthGBs, "tcp was asked for; shm would do"};
}

void tellWays(Answer& answer, const Question& question) {
  const sim::Cluster& cluster = answer.cluster;
  if (cluster.ranksPerHost > 1) answer.ways.push_back(answer.onGpus ? wayOfGpus(answer) : wayOfCores(question));
  if (cluster.hosts > 1) answer.ways.push_back(wayBetweenNodes(answer, question));
}

// Of the GPUs that have ranks.
PathType worstAmong(std::span<const int> gpus, int ranks, const topology::Paths& paths) {
  PathType worst = PathType::kLocal;
  for (int i = 0; i < ranks; ++i)
    for (int j = 0; j < i; ++j) worst = std::max(worst, paths.between(gpus[i], gpus[j]).type);
  return worst;
}

}  // namespace

plan::DeviceMachine deviceMachineOf(const sim::Cluster& cluster, PathType among) {
  plan::DeviceMachine machine;
  machine.ranks = cluster.ranks(), machine.hosts = cluster.hosts;
  machine.linesMoveWhole = among <= PathType::kNvLink;
  machine.channels = kMostChannels;
  machine.gpuGBs = cluster.portGBs;
  if (cluster.hosts > 1) machine.networkGBs = networkGBs(cluster);
  return machine;
}

Answer explain(const System& system, std::string_view name, const Question& question) {
  Answer answer;
  answer.cluster = sim::clusterOf(system, name, question.hosts, question.ranksPerHost);
  if (answer.cluster.ranks() < 2)
    throw Error(ErrorCode::kInvalidArgument, "one rank alone sends nothing: ask for two ranks or more");
  if (const auto forced = question.algorithm.forced(); forced && !schedule::rowOf(*forced).has(question.collective))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has no algorithm {}", nameOf(question.collective), nameOf(*forced)));
  answer.onGpus = !devicesOf(system, DeviceKind::kGpu).empty();
  if (answer.onGpus) {
    const topology::Paths paths(system);
    answer.among = worstAmong(byNumber(system, DeviceKind::kGpu), answer.cluster.ranksPerHost, paths);
    answer.rings = rings::searchRings(system, paths, question.hosts > 1);
    weighGpus(answer, question);
  } else {
    weighHosts(answer, system, question);
  }
  tellWays(answer, question);
  answer.warnings = warningsOf(system);
  return answer;
}

}  // namespace tutti::explain
