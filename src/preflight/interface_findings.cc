#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "preflight/finders.h"

namespace tutti::preflight {
namespace {

bool isV6(const NetAddress& address) { return address.ip.find(':') != std::string::npos; }
bool isLinkLocal(const NetAddress& address) {
  return address.ip.starts_with("fe8") || address.ip.starts_with("169.254.");
}

// The one that others are told first; null where there is none.
const InterfaceReport* firstOf(const HostReport& report) {
  const InterfaceReport* first = nullptr;
  for (const InterfaceReport& one : report.interfaces)
    if (one.use >= 0 && !one.isLoopback && (first == nullptr || one.use < first->use)) first = &one;
  return first;
}

// "10.77.0.0/24"; "" of what is no network that hosts could share.
std::string networkOf(const NetAddress& address) {
  std::array<uint8_t, 16> bytes{};
  const int family = isV6(address) ? AF_INET6 : AF_INET, most = isV6(address) ? 128 : 32;
  if (isLinkLocal(address) || address.prefix <= 0 || address.prefix >= most) return "";
  if (::inet_pton(family, address.ip.c_str(), bytes.data()) != 1) return "";
  for (int bit = address.prefix; bit < most; ++bit)
    bytes[static_cast<size_t>(bit / 8)] &= static_cast<uint8_t>(~(0x80u >> (bit % 8)));
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, bytes.data(), text.data(), text.size());
  return fmt::format("{}/{}", text.data(), address.prefix);
}

void findNone(const Reports& reports, Findings& findings) {
  Together lonely;
  if (reports.size() < 2) return;
  for (const HostReport& one : reports)
    if (firstOf(one) == nullptr)
      lonely.add("no interface that may be used is up and has an address that other hosts could call", one.host);
  lonely.tell(Severity::kError, "Look at `ip addr` there, and at TUTTI_SOCKET_IFNAME and TUTTI_SOCKET_FAMILY",
              findings);
}

struct Place {
  const HostReport* host;
  const InterfaceReport* interface;
};

// Interfaces that may be used, by the networks they are in.
std::map<std::string, std::vector<Place>> networksOf(const Reports& reports) {
  std::map<std::string, std::vector<Place>> networks;
  for (const HostReport& host : reports)
    for (const InterfaceReport& one : host.interfaces) {
      if (one.use < 0 || one.isLoopback) continue;
      for (const NetAddress& address : one.addresses)
        if (const std::string network = networkOf(address); !network.empty())
          networks[network].push_back({&host, &one});
    }
  return networks;
}

// In one network all packets have to fit through all interfaces. One that has two networks is told once.
void findSizes(const Reports& reports, Findings& findings) {
  std::vector<const InterfaceReport*> told;
  for (const auto& [network, places] : networksOf(reports)) {
    std::vector<int64_t> sizes;
    for (const Place& one : places) sizes.push_back(one.interface->mtu);
    const int64_t usual = mostCommon(sizes);
    for (const Place& one : places) {
      if (one.interface->mtu == usual || one.interface->mtu == 0 || usual == 0) continue;
      if (std::ranges::find(told, one.interface) != told.end()) continue;
      told.push_back(one.interface);
      findings.push_back(
          {Severity::kWarning, one.host->host,
           fmt::format("{} has an MTU of {}, other hosts in {} have {}: long packets may vanish on the way",
                       one.interface->name, one.interface->mtu, network, usual),
           fmt::format("`ip link set {} mtu {}` there, if the switches carry that; else the smaller one on all hosts",
                       one.interface->name, usual)});
    }
  }
}

std::array<bool, 2> familiesOf(const HostReport& report) {
  std::array<bool, 2> has{};
  for (const InterfaceReport& one : report.interfaces)
    for (const NetAddress& address : one.addresses)
      if (one.use >= 0 && !one.isLoopback && !isLinkLocal(address)) has[isV6(address) ? 1 : 0] = true;
  return has;
}

// Hosts that have the one family alone, beside others that have only the other.
void findFamilies(const Reports& reports, Findings& findings) {
  std::vector<std::string> only[2];
  for (const HostReport& one : reports) {
    const auto has = familiesOf(one);
    if (has[0] != has[1]) only[has[1] ? 1 : 0].push_back(one.host);
  }
  if (only[0].empty() || only[1].empty()) return;
  const int fewer = only[0].size() < only[1].size() ? 0 : 1;
  findings.push_back({Severity::kError, namesOf(only[fewer]),
                      fmt::format("only IPv{} addresses, and {} only IPv{}: they cannot call each other",
                                  fewer == 0 ? 4 : 6, namesOf(only[1 - fewer]), fewer == 0 ? 6 : 4),
                      "Give all hosts addresses of one family, or allow both (TUTTI_SOCKET_FAMILY=0)"});
}

std::string speedText(int64_t megabits) {
  return megabits >= 1000 ? fmt::format("{:g} Gbit/s", double(megabits) / 1000) : fmt::format("{} Mbit/s", megabits);
}

// Where RDMA carries the data it matters less by which interface ranks call each other.
void findSlowChoice(const Reports& reports, Findings& findings) {
  constexpr double kFarMore = 1.5;
  for (const HostReport& host : reports) {
    const InterfaceReport* const first = firstOf(host);
    const bool byRdma =
        std::ranges::any_of(host.rdma, [](const auto& port) { return port.isActive() && port.isMeant; });
    if (first == nullptr || first->megabits == 0 || byRdma) continue;
    const auto isBetter = [&](const InterfaceReport& one) {
      return one.isUp && !one.isLoopback && !one.addresses.empty() &&
             double(one.megabits) > kFarMore * double(first->megabits);
    };
    const auto better = std::ranges::find_if(host.interfaces, isBetter);
    if (better == host.interfaces.end()) continue;
    findings.push_back({Severity::kWarning, host.host,
                        fmt::format("{} ({}) is used first, though {} ({}) is up", first->name,
                                    speedText(first->megabits), better->name, speedText(better->megabits)),
                        fmt::format("TUTTI_SOCKET_IFNAME={} on all hosts, if it leads to all of them", better->name)});
  }
}

// One that is down here and used elsewhere; that one of many is not plugged in anywhere is nobody's business.
void findDown(const Reports& reports, Findings& findings) {
  std::map<std::string, std::vector<std::string>> usedOn;  // by name: a job may have thousands of hosts
  for (const HostReport& host : reports)
    for (const InterfaceReport& one : host.interfaces)
      if (one.isUp && one.use >= 0) usedOn[one.name].push_back(host.host);
  for (const HostReport& host : reports)
    for (const InterfaceReport& one : host.interfaces) {
      const auto elsewhere = usedOn.find(one.name);
      if (one.isUp || one.isLoopback || elsewhere == usedOn.end()) continue;
      findings.push_back(
          {Severity::kWarning, host.host,
           fmt::format("{} is down ({}), and used on {}", one.name, one.state, namesOf(elsewhere->second)),
           fmt::format("Look at its cable and switch port; `ip link set {} up` there", one.name)});
    }
}

// Of interfaces of one name in one network.
void findSpeeds(const Reports& reports, Findings& findings) {
  std::vector<int64_t> speeds;
  for (const HostReport& host : reports)
    if (const auto* const first = firstOf(host); first && first->megabits > 0) speeds.push_back(first->megabits);
  if (speeds.size() < 3) return;  // of two nobody knows which is the odd one
  const int64_t usual = mostCommon(speeds);
  for (const HostReport& host : reports) {
    const auto* const first = firstOf(host);
    if (first == nullptr || first->megabits == 0 || first->megabits >= usual) continue;
    findings.push_back({Severity::kWarning, host.host,
                        fmt::format("{} runs at {}, those of most hosts at {}", first->name, speedText(first->megabits),
                                    speedText(usual)),
                        "Look at its cable, its switch port and what the two have agreed on (`ethtool`)"});
  }
}

}  // namespace

void findInterfaces(const Reports& reports, Findings& findings) {
  findNone(reports, findings);
  findFamilies(reports, findings);
  findSizes(reports, findings);
  findDown(reports, findings);
  findSpeeds(reports, findings);
  findSlowChoice(reports, findings);
}

}  // namespace tutti::preflight
