#include "preflight/collect.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/port_list.h"
#include "base/version.h"
#include "detect/interfaces.h"
#include "detect/rdma.h"
#include "detect/sysfs.h"
#include "net/address.h"
#include "preflight/pci.h"
#include "process/fd.h"
#include "topology/quota.h"

namespace tutti::preflight {
namespace {

using detect::Sysfs;

const std::string kNet = "/sys/class/net/", kRdma = "/sys/class/infiniband/";

template <class Bytes>
int prefixOf(const Bytes& mask) {
  int bits = 0;
  for (const uint8_t byte : mask) bits += std::popcount(byte);
  return bits;
}

std::array<uint8_t, 16> bytesOf(const sockaddr* address) {
  std::array<uint8_t, 16> bytes{};
  if (address == nullptr) return bytes;
  if (address->sa_family == AF_INET6)
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  else
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  return bytes;
}

int64_t mtuOf(const std::string& name) {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  return socket.get() >= 0 && ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

SeenInterface& placeOf(const ifaddrs& entry, std::vector<SeenInterface>& all) {
  const auto found = std::ranges::find(all, entry.ifa_name, &SeenInterface::name);
  if (found != all.end()) return *found;
  SeenInterface& one = all.emplace_back();
  one.name = entry.ifa_name;
  one.index = static_cast<int>(::if_nametoindex(entry.ifa_name));
  one.mtu = mtuOf(one.name);
  one.isUp = (entry.ifa_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
  one.isLoopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  return one;
}

// Also those without an address, which have an entry of the kernel's own family.
std::vector<SeenInterface> interfacesHere() {
  ifaddrs* made = nullptr;
  if (::getifaddrs(&made) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> entries(made, ::freeifaddrs);
  std::vector<SeenInterface> all;
  for (const ifaddrs* one = entries.get(); one != nullptr; one = one->ifa_next) {
    SeenInterface& place = placeOf(*one, all);
    const int family = one->ifa_addr == nullptr ? AF_UNSPEC : one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Address address;
    address.v6 = family == AF_INET6;
    address.ip = bytesOf(one->ifa_addr);
    place.addresses.push_back({ipOf(address), prefixOf(bytesOf(one->ifa_netmask))});
  }
  std::ranges::sort(all, {}, &SeenInterface::name);
  return all;
}

std::vector<std::string> usedInterfaces(const Network& network) {
  std::vector<std::string> names;
  try {
    for (const Interface& one : chosenInterfaces(network))
      if (std::ranges::find(names, one.name) == names.end()) names.push_back(one.name);
  } catch (const Error&) {  // none matches: the report shows it
  }
  return names;
}

uint64_t limitOf(rlim_t limit) { return limit == RLIM_INFINITY ? Limits::kUnlimited : limit; }

Limits limitsHere() {
  Limits limits;
  rlimit one{};
  if (::getrlimit(RLIMIT_MEMLOCK, &one) == 0) limits.lockedBytes = limitOf(one.rlim_cur);
  // Who may lock what he likes is not limited.
  if (::geteuid() == 0) limits.lockedBytes = Limits::kUnlimited;
  if (::getrlimit(RLIMIT_NOFILE, &one) == 0) {
    limits.openFiles = limitOf(one.rlim_cur);
    limits.openFilesAtMost = limitOf(one.rlim_max);
  }
  return limits;
}

std::string valueOf(const std::map<std::string, std::string>& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

int wholeNumber(const std::string& text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

InterfaceReport interfaceOf(const Sysfs& sysfs, const Sources& sources, const SeenInterface& seen) {
  InterfaceReport one;
  one.name = seen.name;
  one.state = seen.isUp ? "up" : "down";
  one.isUp = seen.isUp;
  one.isLoopback = seen.isLoopback;
  one.mtu = seen.mtu;
  one.addresses = seen.addresses;
  const auto use = std::ranges::find(sources.used, seen.name);
  if (use != sources.used.end()) one.use = static_cast<int>(use - sources.used.begin());
  const std::string folder = kNet + seen.name;
  if (sysfs.number(folder + "/ifindex") != seen.index) return one;
  one.state = sysfs.line(folder + "/operstate").value_or(one.state);
  one.isDevice = sysfs.has(folder + "/device");
  one.megabits = detect::speedOf(sysfs, seen.name);
  return one;
}

// "4: ACTIVE" as "ACTIVE".
std::string withoutNumber(const std::string& said) {
  const size_t colon = said.find(": ");
  return colon == std::string::npos ? said : said.substr(colon + 2);
}

RdmaPortReport portOf(const Sysfs& sysfs, const Sources& sources, const std::string& device,
                      const std::string& number) {
  const std::string folder = fmt::format("{}{}/ports/{}", kRdma, device, number);
  const auto line = [&](const char* file) { return sysfs.line(folder + file).value_or(""); };
  RdmaPortReport port;
  port.device = device;
  port.number = wholeNumber(number, 0);
  port.state = withoutNumber(line("/state"));
  port.physical = withoutNumber(line("/phys_state"));
  port.layer = line("/link_layer");
  port.megabits = detect::megabitsOfRate(line("/rate"));
  port.gids = detect::gidsOf(sysfs, folder);
  port.isMeant = meansPort(sources.rdmaPorts, device, port.number);
  for (const std::string& index : sysfs.names(folder + "/gid_attrs/ndevs"))
    if (port.interface.empty()) port.interface = line(("/gid_attrs/ndevs/" + index).c_str());
  return port;
}

Limits allLimits(const Sources& sources) {
  Limits limits = sources.limits;
  limits.cores = topology::processorQuota(sources.root).value_or(0);
  limits.memoryBytes = topology::memoryQuota(sources.root).value_or(Limits::kUnlimited);
  struct statvfs shared {};
  if (::statvfs((sources.root + "/dev/shm").c_str(), &shared) == 0)
    limits.sharedMemoryBytes = uint64_t{shared.f_blocks} * shared.f_frsize;
  return limits;
}

int64_t timeOfDayMs() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

Sources sourcesHere(const Network& network, const std::map<std::string, std::string>& settings) {
  Sources sources;
  sources.interfaces = interfacesHere();
  sources.used = usedInterfaces(network);
  sources.rdmaPorts = valueOf(settings, "TUTTI_IB_HCA");
  sources.gidIndex = wholeNumber(valueOf(settings, "TUTTI_IB_GID_INDEX"), -1);
  sources.limits = limitsHere();
  return sources;
}

HostReport collect(const Sources& sources) {
  const Sysfs sysfs(sources.root);
  HostReport report;
  report.host = hostName();
  report.version = kVersion;
  report.kernel = sysfs.line("/proc/sys/kernel/osrelease").value_or("");
  report.firstRank = -1;
  report.clockMs = timeOfDayMs();
  report.asRoot = ::geteuid() == 0;
  report.iommu = iommuMode(sysfs);
  report.acsRedirects = acsRedirects(sysfs);
  report.nvidiaGpus = nvidiaGpus(sysfs);
  report.gidIndex = sources.gidIndex;
  report.limits = allLimits(sources);
  for (const SeenInterface& one : sources.interfaces) report.interfaces.push_back(interfaceOf(sysfs, sources, one));
  for (const std::string& device : sysfs.names(kRdma))
    for (const std::string& port : sysfs.names(kRdma + device + "/ports"))
      report.rdma.push_back(portOf(sysfs, sources, device, port));
  return report;
}

}  // namespace tutti::preflight
