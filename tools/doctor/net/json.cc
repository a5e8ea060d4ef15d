#include <nlohmann/json.hpp>

#include "base/version.h"
#include "doctor/net/table.h"

namespace tutti::doctor::net {
namespace {

using Json = nlohmann::ordered_json;
using preflight::Limits;

// null: no limit.
Json limit(uint64_t number) { return number == Limits::kUnlimited ? Json(nullptr) : Json(number); }

Json asJson(const preflight::InterfaceReport& one) {
  Json addresses = Json::array();
  for (const auto& address : one.addresses) addresses.push_back(address.ip + "/" + std::to_string(address.prefix));
  return {{"name", one.name}, {"state", one.state},       {"up", one.isUp},        {"used", one.use >= 0},
          {"mtu", one.mtu},   {"megabits", one.megabits}, {"addresses", addresses}};
}

Json asJson(const preflight::RdmaPortReport& one) {
  Json gids = Json::array();
  for (const auto& gid : one.gids) gids.push_back({{"index", gid.index}, {"address", gid.address}, {"type", gid.type}});
  return {{"device", one.device},
          {"port", one.number},
          {"state", one.state},
          {"physical", one.physical},
          {"layer", one.layer},
          {"interface", one.interface},
          {"used", one.isMeant && one.isActive()},
          {"megabits", one.megabits},
          {"gids", gids}};
}

const char* nameOf(preflight::IommuMode mode) {
  constexpr const char* kNames[] = {"unknown", "off", "passthrough", "translates"};
  return kNames[static_cast<size_t>(mode)];
}

Json asJson(const preflight::HostReport& one) {
  Json interfaces = Json::array(), rdma = Json::array();
  for (const auto& interface : one.interfaces) interfaces.push_back(asJson(interface));
  for (const auto& port : one.rdma) rdma.push_back(asJson(port));
  const Limits& limits = one.limits;
  return {{"host", one.host},
          {"first_rank", one.firstRank},
          {"ranks", one.ranks},
          {"tutti_version", one.version},
          {"kernel", one.kernel},
          {"clock_ms", one.clockMs},
          {"locked_bytes", limit(limits.lockedBytes)},
          {"open_files", limit(limits.openFiles)},
          {"open_files_at_most", limit(limits.openFilesAtMost)},
          {"memory_bytes", limit(limits.memoryBytes)},
          {"shared_memory_bytes", limits.sharedMemoryBytes},
          {"processors", limits.cores > 0 ? Json(limits.cores) : Json(nullptr)},
          {"iommu", nameOf(one.iommu)},
          {"acs_redirects", one.acsRedirects < 0 ? Json(nullptr) : Json(one.acsRedirects)},
          {"nvidia_gpus", one.nvidiaGpus},
          {"interfaces", interfaces},
          {"rdma", rdma}};
}

Json asJson(const Outcome& outcome, const preflight::PairResult& one) {
  Json pair = {{"low", one.low},
               {"high", one.high},
               {"hosts", {outcome.reports[one.lowHost].host, outcome.reports[one.highHost].host}},
               {"transport", one.transport},
               {"works", one.works()}};
  if (one.works())
    pair.update({{"latency_us", one.latencyUs}, {"there_gb_s", one.there}, {"back_gb_s", one.back}});
  else
    pair["why"] = one.why;
  return pair;
}

}  // namespace

std::string asJson(const Outcome& outcome, const std::vector<preflight::Finding>& findings) {
  Json hosts = Json::array(), pairs = Json::array(), told = Json::array();
  for (const auto& one : outcome.reports) hosts.push_back(asJson(one));
  for (const auto& one : outcome.pairs) pairs.push_back(asJson(outcome, one));
  for (const auto& one : findings)
    told.push_back(
        {{"severity", preflight::nameOf(one.severity)}, {"who", one.who}, {"what", one.what}, {"fix", one.fix}});
  const Json all = {{"tutti_version", kVersion}, {"ranks", outcome.ranks},   {"hosts", hosts},  {"pairs", pairs},
                    {"notes", outcome.notes},    {"broken", outcome.broken}, {"findings", told}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::doctor::net
