#include "net/network.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "base/error.h"
#include "settings/settings.h"

namespace tutti {
namespace {

struct Found {
  std::string name;  // of the interface
  Address address;
  bool loopback = false, linkLocal = false;
  int worth = 0;  // 0: the default route takes its interface; 1: others; 2: no carrier
};

constexpr int kWorths = 3;

std::vector<std::string> splitList(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The interfaces that a default route of either family takes; none where the system does not tell.
std::set<std::string> defaultInterfaces() {
  std::set<std::string> names;
  std::string line;
  for (std::ifstream file("/proc/net/route"); std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, destination, skipped, mask;
    words >> name >> destination >> skipped >> skipped >> skipped >> skipped >> skipped >> mask;
    if (destination == "00000000" && mask == "00000000") names.insert(name);
  }
  for (std::ifstream file("/proc/net/ipv6_route"); std::getline(file, line);) {
    std::istringstream words(line);
    std::string destination, length, skipped, name;
    words >> destination >> length >> skipped >> skipped >> skipped >> skipped >> skipped >> skipped >> skipped >> name;
    if (destination == std::string(32, '0') && length == "00") names.insert(name);
  }
  return names;
}

bool usable(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
  return entry.ifa_addr->sa_family == AF_INET || entry.ifa_addr->sa_family == AF_INET6;
}

Found toFound(const ifaddrs& entry, const std::set<std::string>& defaults) {
  Found found;
  found.name = entry.ifa_name;
  found.worth = (entry.ifa_flags & IFF_RUNNING) == 0 ? 2 : defaults.count(entry.ifa_name) ? 0 : 1;
  found.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    found.address.v6 = true;
    std::memcpy(found.address.ip.data(), &in6->sin6_addr, 16);
    found.linkLocal = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
    if (found.linkLocal) found.address.scope = in6->sin6_scope_id;
  } else {
    const auto* in4 = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    std::memcpy(found.address.ip.data(), &in4->sin_addr, 4);
    found.linkLocal = found.address.ip[0] == 169 && found.address.ip[1] == 254;
  }
  return found;
}

std::vector<Found> findAddresses(const Network& network) {
  ifaddrs* made = nullptr;
  if (::getifaddrs(&made) != 0) throw systemError("cannot list the network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(made, ::freeifaddrs);
  std::vector<Found> found;
  const auto defaults = defaultInterfaces();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (!usable(*entry) || !matchesInterface(network.interfaces, entry->ifa_name)) continue;
    const Found one = toFound(*entry, defaults);
    if (network.family == 0 || (network.family == 6) == one.address.v6) found.push_back(one);
  }
  return found;
}

// IPv4 and IPv6 in turn, so that a host which speaks only one of them finds one early in the list.
void appendInTurn(std::vector<Interface>& out, const std::vector<Found>& found, bool loopback, bool linkLocal) {
  std::vector<Interface> families[2];
  for (int worth = 0; worth < kWorths; ++worth)
    for (const Found& one : found)
      if (one.worth == worth && one.loopback == loopback && one.linkLocal == linkLocal)
        families[one.address.v6 ? 1 : 0].push_back({one.name, one.address});
  for (size_t i = 0; i < std::max(families[0].size(), families[1].size()); ++i)
    for (const auto& family : families)
      if (i < family.size()) out.push_back(family[i]);
}

int familyOf(const std::string& text) {
  if (text == "4" || text == "6" || text == "0") return text.front() - '0';
  throw Error(ErrorCode::kInvalidArgument, fmt::format("TUTTI_SOCKET_FAMILY={}: choose 4, 6, or 0 for both", text));
}

void parsePortRange(const std::string& text, Network& network) {
  const size_t dash = text.find('-');
  const std::string parts[2] = {text.substr(0, dash), dash == std::string::npos ? text : text.substr(dash + 1)};
  uint16_t* const ports[2] = {&network.firstPort, &network.lastPort};
  for (int i = 0; i < 2; ++i) {
    const char* end = parts[i].data() + parts[i].size();
    const auto [stop, failure] = std::from_chars(parts[i].data(), end, *ports[i]);
    if (failure != std::errc() || stop != end || *ports[i] == 0)
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("TUTTI_PORT_RANGE={}: expected first-last, each from 1 to 65535, such as 40000-40100", text));
  }
  if (network.firstPort > network.lastPort)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("TUTTI_PORT_RANGE={}: it ends before it begins", text));
}

}  // namespace

bool matchesInterface(const std::string& list, const std::string& name) {
  const bool excludes = list.starts_with('^'), exact = list.starts_with('=') || list.starts_with("^=");
  const auto parts = splitList(list.substr((excludes ? 1 : 0) + (exact ? 1 : 0)));
  if (parts.empty()) return true;
  const bool listed = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    const bool marked = part.front() == '=';
    return marked ? name == part.substr(1) : exact ? name == part : name.starts_with(part);
  });
  return listed != excludes;
}

namespace {

// `each` is called with what reads one setting, and may throw.
template <class Each>
Network readNetwork(Each each) {
  Network network;
  network.interfaces = settings::text("TUTTI_SOCKET_IFNAME");
  each([&] { network.family = familyOf(settings::text("TUTTI_SOCKET_FAMILY")); });
  each([&] { network.unixSockets = settings::isOn("TUTTI_UNIX_SOCKETS"); });
  each([&] {
    Network ports;
    if (const auto range = settings::find("TUTTI_PORT_RANGE")) parsePortRange(*range, ports);
    network.firstPort = ports.firstPort, network.lastPort = ports.lastPort;
  });
  return network;
}

}  // namespace

Network Network::fromEnvironment() {
  return readNetwork([](const auto& read) { read(); });
}

Network Network::asFarAsReadable() {
  return readNetwork([](const auto& read) {
    try {
      read();
    } catch (const Error&) {  // fromEnvironment() tells
    }
  });
}

std::vector<Interface> chosenInterfaces(const Network& network) {
  const auto found = findAddresses(network);
  std::vector<Interface> chosen;
  appendInTurn(chosen, found, false, false);
  if (chosen.empty()) appendInTurn(chosen, found, false, true);
  appendInTurn(chosen, found, true, false);
  if (chosen.empty() && (!network.interfaces.empty() || network.family != 0))
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("no network interface that is up matches TUTTI_SOCKET_IFNAME='{}' with {}; see `ip addr`",
                            network.interfaces,
                            network.family == 0   ? "any address"
                            : network.family == 4 ? "an IPv4 address"
                                                  : "an IPv6 address"));
  return chosen;
}

std::vector<Address> chosenAddresses(const Network& network) {
  std::vector<Address> addresses;
  for (const Interface& one : chosenInterfaces(network)) addresses.push_back(one.address);
  return addresses;
}

uint32_t firstMegabits(const Network& network, const std::string& root) try {
  constexpr int64_t kMost = 100'000'000;
  const std::vector<Interface> chosen = chosenInterfaces(network);
  if (chosen.empty()) return 0;
  std::ifstream file(fmt::format("{}/sys/class/net/{}/speed", root, chosen.front().name));
  int64_t megabits = 0;  // -1 where the driver has no idea
  return file >> megabits && megabits > 0 && megabits <= kMost ? static_cast<uint32_t>(megabits) : 0;
} catch (const std::exception&) {  // whoever listens on these interfaces says what is wrong with them
  return 0;
}

std::vector<Address> asSeenFromHere(const std::vector<Address>& addresses) {
  const auto isScoped = [](const Address& address) { return address.v6 && address.scope != 0; };
  if (std::none_of(addresses.begin(), addresses.end(), isScoped)) return addresses;
  std::set<uint32_t> scopes;
  for (const Found& found : findAddresses({}))
    if (isScoped(found.address)) scopes.insert(found.address.scope);
  std::vector<Address> seen;
  for (Address address : addresses) {
    if (!isScoped(address)) seen.push_back(address);
    if (!isScoped(address)) continue;
    for (const uint32_t scope : scopes) {
      address.scope = scope;
      seen.push_back(address);
    }
  }
  return seen;
}

std::string hostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

}  // namespace tutti
