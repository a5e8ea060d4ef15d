#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
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
      deviceMachineOf(answer.cluster, answer.links), question.algorithm, question.protocol, question.channels);
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
  const double gigabytes = answer.links.pairGBs;
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

// What is predicted on cores is for TCP as the profile has it; on GPUs, for what the NICs carry.
Way wayBetweenNodes(const Answer& answer, const Question& question) {
  const char* const why = "RDMA (InfiniBand, RoCE; TUTTI_TRANSPORT=verbs) carries it where all nodes have ports";
  if (!answer.onGpus)
    return {"ranks of different nodes", "tcp", question.prices.tcpNetwork.bandwidthGBs,
            fmt::format("{}; the prediction is for TCP", why)};
  const rings::HostLinks& links = answer.links;
  std::string over = "tcp, through pinned host memory, by Simple only";
  if (links.networkGBs < links.nicGBs)
    over += fmt::format("; {:.1f} GB/s each while all of a node's ranks send", links.networkGBs);
  return {"ranks of different nodes", over, links.nicGBs,
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

// As paths go that a GPU may hand on.
PathType worstAmong(std::span<const int> gpus, const topology::Paths& paths) {
  PathType worst = PathType::kLocal;
  for (const int one : gpus)
    for (const int other : gpus) worst = std::max(worst, paths.between(one, other).type);
  return worst;
}

}  // namespace

plan::DeviceMachine deviceMachineOf(const sim::Cluster& cluster, const rings::HostLinks& links) {
  plan::DeviceMachine machine;
  machine.ranks = cluster.ranks(), machine.hosts = cluster.hosts;
  machine.linesMoveWhole = links.among <= PathType::kNvLink;
  machine.channels = kMostChannels;
  machine.gpuGBs = links.pairGBs, machine.ringGBs = links.ringGBs;
  if (cluster.hosts > 1) machine.nicGBs = links.nicGBs, machine.networkGBs = links.networkGBs;
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
    std::vector<int> gpus = byNumber(system, DeviceKind::kGpu);
    gpus.resize(static_cast<size_t>(answer.cluster.ranksPerHost));
    answer.among = worstAmong(gpus, paths);
    answer.links = rings::hostLinks(system, gpus);
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
