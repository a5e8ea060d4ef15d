#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "preflight/finders.h"

namespace tutti::preflight {
namespace {

bool isV2(const topology::Gid& gid) { return gid.type == "RoCE v2"; }
// An IPv4 address stands behind ::ffff:, written out.
bool isIpv4(const topology::Gid& gid) { return gid.address.starts_with("0000:0000:0000:0000:0000:ffff:"); }
bool isLocal(const topology::Gid& gid) { return gid.address.starts_with("fe8"); }

// As the transport chooses: the lower, the better.
int worthOf(const topology::Gid& gid) { return (isV2(gid) ? 0 : 4) + (isIpv4(gid) ? 0 : isLocal(gid) ? 2 : 1); }

// The address by which a port is told to others; null where there is none.
const topology::Gid* chosen(const RdmaPortReport& port, int wanted) {
  if (port.gids.empty()) return nullptr;
  if (wanted >= 0) {
    const auto found = std::ranges::find(port.gids, wanted, &topology::Gid::index);
    return found == port.gids.end() ? nullptr : &*found;
  }
  return port.isRoce() ? &*std::ranges::min_element(port.gids, {}, worthOf) : &port.gids.front();
}

bool isOfUse(const RdmaPortReport& port) { return port.isActive() && port.isMeant; }

size_t usable(const HostReport& report) { return static_cast<size_t>(std::ranges::count_if(report.rdma, isOfUse)); }

std::string fixOfDown(const RdmaPortReport& port) {
  if (!port.isRoce() && (port.state == "INIT" || port.state == "ARMED"))
    return "No subnet manager has set it up: start opensm on a host, or the switch's";
  if (port.physical == "Disabled")
    return port.interface.empty() ? "It is switched off: switch it on (`ibportstate`, `mlxconfig`)"
                                  : fmt::format("It is switched off: `ip link set {} up`", port.interface);
  const std::string link = port.interface.empty() ? "" : fmt::format(", and `ip link set {} up`", port.interface);
  return fmt::format("Look at its cable and switch port{}", link);
}

// Where no port is left it is RDMA that is missing; where others are, it is their part of the bandwidth.
void findDownPorts(const HostReport& host, Findings& findings) {
  for (const RdmaPortReport& port : host.rdma) {
    if (!port.isMeant || port.isActive()) continue;
    const std::string physical = port.physical.empty() ? "" : ", " + port.physical;
    const char* const then = usable(host) == 0 ? "there is no RDMA on this host" : "its part goes over the others";
    findings.push_back({usable(host) == 0 ? Severity::kError : Severity::kWarning, host.host,
                        fmt::format("RDMA port {} is {}{}: {}", port.name(), port.state, physical, then),
                        fixOfDown(port)});
  }
}

void findAddresses(const HostReport& host, Findings& findings) {
  for (const RdmaPortReport& port : host.rdma) {
    if (!isOfUse(port)) continue;
    const std::string where = port.interface.empty() ? "its network interface" : port.interface;
    const topology::Gid* const gid = chosen(port, host.gidIndex);
    if (gid == nullptr)
      findings.push_back({Severity::kError, host.host,
                          host.gidIndex >= 0 && !port.gids.empty()
                              ? fmt::format("RDMA port {} has no address number {}", port.name(), host.gidIndex)
                              : fmt::format("RDMA port {} has no address (GID)", port.name()),
                          host.gidIndex >= 0
                              ? std::string("Leave TUTTI_IB_GID_INDEX out, or choose a number of `show_gids`")
                              : fmt::format("Give {} an IP address", where)});
    else if (port.isRoce() && !isV2(*gid))
      findings.push_back({Severity::kWarning, host.host,
                          fmt::format("RDMA port {} has no address of RoCE version 2 that is chosen: it has no way "
                                      "through routers",
                                      port.name()),
                          host.gidIndex >= 0
                              ? std::string("Leave TUTTI_IB_GID_INDEX out")
                              : fmt::format("Give {} an IP address; `cma_roce_mode` sets the version", where)});
    else if (port.isRoce() && isLocal(*gid))
      findings.push_back({Severity::kHint, host.host,
                          fmt::format("RDMA port {} has no address but a link-local one", port.name()),
                          fmt::format("Give {} an IP address, if hosts do not reach each other", where)});
  }
}

// Why links go over something else though a port is there and active.
void findLack(const HostReport& host, Findings& findings) {
  if (usable(host) == 0 || host.lacksVerbs.empty()) return;
  findings.push_back({Severity::kWarning, host.host,
                      fmt::format("RDMA is there and cannot be used: {}", host.lacksVerbs), "See docs/verbs.md"});
}

// What two ports have to have in common: InfiniBand the fabric, RoCE version and family of addresses.
std::string kindOf(const RdmaPortReport& port, int wanted) {
  constexpr size_t kPrefix = sizeof "0000:0000:0000:0000" - 1;
  const topology::Gid* const gid = chosen(port, wanted);
  if (gid == nullptr) return "";
  if (!port.isRoce()) return "InfiniBand, subnet " + gid->address.substr(0, kPrefix);
  return fmt::format("{}, IPv{}", isV2(*gid) ? "RoCE v2" : "RoCE v1", isIpv4(*gid) ? 4 : 6);
}

void findKinds(const Reports& reports, Findings& findings) {
  std::vector<std::string> all;
  std::vector<std::set<std::string>> ofHost;
  for (const HostReport& host : reports) {
    std::set<std::string>& kinds = ofHost.emplace_back();
    for (const RdmaPortReport& port : host.rdma)
      if (const std::string kind = isOfUse(port) ? kindOf(port, host.gidIndex) : ""; !kind.empty()) kinds.insert(kind);
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  if (all.empty()) return;
  const std::string usual = mostCommon(all);
  for (size_t i = 0; i < reports.size(); ++i) {
    if (ofHost[i].empty() || ofHost[i].contains(usual)) continue;
    findings.push_back(
        {Severity::kError, reports[i].host,
         fmt::format("its RDMA addresses are {}, those of most hosts {}: they cannot reach each other",
                     namesOf({ofHost[i].begin(), ofHost[i].end()}), usual),
         usual.starts_with("InfiniBand")
             ? "Connect it to the same fabric, or use the ports that are (TUTTI_IB_HCA)"
             : "Give their interfaces addresses of one family, and set TUTTI_IB_GID_INDEX alike on all"});
  }
}

// Hosts that have fewer ports than most, or slower ones.
void findFewer(const Reports& reports, Findings& findings) {
  std::vector<size_t> counts;
  std::vector<int64_t> rates;
  for (const HostReport& host : reports) {
    counts.push_back(host.rdma.size());
    for (const RdmaPortReport& port : host.rdma)
      if (isOfUse(port)) rates.push_back(port.megabits);
  }
  const size_t usual = mostCommon(counts);
  Together fewer;
  for (const HostReport& host : reports)
    if (host.rdma.size() < usual)
      fewer.add(host.rdma.empty() ? fmt::format("no RDMA device, where most hosts have {} ports", usual)
                                  : fmt::format("{} RDMA ports, where most hosts have {}", host.rdma.size(), usual),
                host.host);
  fewer.tell(Severity::kWarning,
             "Look at `lspci`, `rdma link` and what the container was given (--device /dev/infiniband)", findings);
  if (rates.size() < 3) return;
  const int64_t usualRate = mostCommon(rates);
  for (const HostReport& host : reports)
    for (const RdmaPortReport& port : host.rdma)
      if (isOfUse(port) && port.megabits > 0 && port.megabits < usualRate)
        findings.push_back({Severity::kWarning, host.host,
                            fmt::format("RDMA port {} runs at {:g} Gbit/s, most at {:g}", port.name(),
                                        double(port.megabits) / 1000, double(usualRate) / 1000),
                            "Look at its cable: lanes that are broken, or a slower kind"});
}

}  // namespace

void findRdma(const Reports& reports, Findings& findings) {
  if (reports.empty()) return;
  for (const HostReport& host : reports) {
    findDownPorts(host, findings);
    findAddresses(host, findings);
    findLack(host, findings);
  }
  findKinds(reports, findings);
  findFewer(reports, findings);
}

}  // namespace tutti::preflight
