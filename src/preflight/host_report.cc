#include "preflight/host_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/plain_text.h"

namespace tutti::preflight {
namespace {

constexpr uint32_t kMagic = 0x74736f68;  // "host"
constexpr uint8_t kFormat = 1;
constexpr size_t kMostText = 128, kMostReason = 400, kMostInterfaces = 64, kMostAddresses = 16, kMostPorts = 64,
                 kMostGids = 32;

// It stands in logs and on terminals of others.
Writer& plain(Writer& out, const std::string& text, size_t most = kMostText) { return out.text(plainText(text, most)); }

std::string plain(Reader& in, size_t most = kMostText) {
  std::string text = in.text();
  if (plainText(text, most) != text) throw Error(ErrorCode::kRemote, "a host's report holds what no report holds");
  return text;
}

template <class T, class Each>
void list(Writer& out, const std::vector<T>& all, size_t most, Each each) {
  const size_t count = std::min(all.size(), most);
  out.value(static_cast<uint8_t>(count));
  for (size_t i = 0; i < count; ++i) each(all[i]);
}

template <class T, class Each>
std::vector<T> list(Reader& in, size_t most, Each each) {
  const size_t count = in.value<uint8_t>();
  if (count > most) throw Error(ErrorCode::kRemote, fmt::format("a host's report lists {} of {} at most", count, most));
  std::vector<T> all;
  for (size_t i = 0; i < count; ++i) all.push_back(each());
  return all;
}

void write(Writer& out, const InterfaceReport& one) {
  plain(out, one.name);
  plain(out, one.state);
  out.value(uint8_t{one.isUp}).value(uint8_t{one.isDevice}).value(uint8_t{one.isLoopback});
  out.value(int32_t{one.use}).value(one.mtu).value(one.megabits);
  list(out, one.addresses, kMostAddresses,
       [&](const NetAddress& address) { plain(out, address.ip).value(int32_t{address.prefix}); });
}

InterfaceReport readInterface(Reader& in) {
  InterfaceReport one;
  one.name = plain(in);
  one.state = plain(in);
  one.isUp = in.value<bool>();
  one.isDevice = in.value<bool>();
  one.isLoopback = in.value<bool>();
  one.use = in.value<int32_t>();
  one.mtu = in.value<int64_t>();
  one.megabits = in.value<int64_t>();
  one.addresses = list<NetAddress>(in, kMostAddresses, [&] {
    NetAddress address;
    address.ip = plain(in);
    address.prefix = in.value<int32_t>();
    return address;
  });
  return one;
}

void write(Writer& out, const RdmaPortReport& one) {
  for (const std::string* text : {&one.device, &one.state, &one.physical, &one.layer, &one.interface})
    plain(out, *text);
  out.value(int32_t{one.number}).value(uint8_t{one.isMeant}).value(one.megabits);
  list(out, one.gids, kMostGids,
       [&](const topology::Gid& gid) { plain(plain(out, gid.address), gid.type).value(int32_t{gid.index}); });
}

RdmaPortReport readPort(Reader& in) {
  RdmaPortReport one;
  for (std::string* text : {&one.device, &one.state, &one.physical, &one.layer, &one.interface}) *text = plain(in);
  one.number = in.value<int32_t>();
  one.isMeant = in.value<bool>();
  one.megabits = in.value<int64_t>();
  one.gids = list<topology::Gid>(in, kMostGids, [&] {
    topology::Gid gid;
    gid.address = plain(in);
    gid.type = plain(in);
    gid.index = in.value<int32_t>();
    return gid;
  });
  return one;
}

void write(Writer& out, const Limits& limits) {
  out.value(limits.lockedBytes).value(limits.openFiles).value(limits.openFilesAtMost).value(limits.memoryBytes);
  out.value(limits.sharedMemoryBytes).value(limits.cores);
}

Limits readLimits(Reader& in) {
  Limits limits;
  for (uint64_t* number : {&limits.lockedBytes, &limits.openFiles, &limits.openFilesAtMost, &limits.memoryBytes,
                           &limits.sharedMemoryBytes})
    *number = in.value<uint64_t>();
  limits.cores = in.value<double>();
  return limits;
}

// Hosts are added up and compared: nothing of that may overflow.
void requireSense(const HostReport& report) {
  constexpr int kMostRanks = 1 << 24;  // no job has so many
  constexpr int64_t kFarthestMs = int64_t{1} << 53;
  const bool ranks = report.firstRank >= -1 && report.firstRank < kMostRanks && report.ranks >= 1 &&
                     report.ranks <= kMostRanks && report.acsRedirects >= -1 && report.nvidiaGpus >= 0;
  const bool cores = report.limits.cores >= 0 && report.limits.cores < 1e9;
  const bool clock = report.clockMs >= -kFarthestMs && report.clockMs <= kFarthestMs;
  if (!ranks || !cores || !clock) throw Error(ErrorCode::kRemote, "a host's report holds numbers that no host has");
}

}  // namespace

void tellApart(std::vector<HostReport>& reports) {
  std::map<std::string, int> counts;
  for (const HostReport& one : reports) ++counts[one.host];
  for (HostReport& one : reports)
    if (counts[one.host] > 1) one.host += fmt::format("#{}", one.firstRank);
}

Bytes encode(const HostReport& report) {
  Writer out;
  out.value(kMagic).value(kFormat);
  for (const std::string* text : {&report.host, &report.version, &report.kernel}) plain(out, *text);
  plain(out, report.lacksVerbs, kMostReason);
  out.value(report.hostId).value(int32_t{report.firstRank}).value(int32_t{report.ranks}).value(report.clockMs);
  out.value(uint8_t{report.asRoot}).value(report.iommu).value(int32_t{report.acsRedirects});
  out.value(int32_t{report.nvidiaGpus}).value(int32_t{report.gidIndex});
  write(out, report.limits);
  list(out, report.interfaces, kMostInterfaces, [&](const auto& one) { write(out, one); });
  list(out, report.rdma, kMostPorts, [&](const auto& one) { write(out, one); });
  return out.take();
}

HostReport decodeHostReport(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.value<uint32_t>() != kMagic || in.value<uint8_t>() != kFormat)
    throw Error(ErrorCode::kRemote,
                fmt::format("a host's report is not of format {}: do all ranks run the same tutti?", kFormat));
  HostReport report;
  for (std::string* text : {&report.host, &report.version, &report.kernel}) *text = plain(in);
  report.lacksVerbs = plain(in, kMostReason);
  report.hostId = in.value<uint64_t>();
  report.firstRank = in.value<int32_t>();
  report.ranks = in.value<int32_t>();
  report.clockMs = in.value<int64_t>();
  report.asRoot = in.value<bool>();
  report.iommu = in.oneOf(IommuMode::kUnknown, IommuMode::kTranslates);
  report.acsRedirects = in.value<int32_t>();
  report.nvidiaGpus = in.value<int32_t>();
  report.gidIndex = in.value<int32_t>();
  report.limits = readLimits(in);
  report.interfaces = list<InterfaceReport>(in, kMostInterfaces, [&] { return readInterface(in); });
  report.rdma = list<RdmaPortReport>(in, kMostPorts, [&] { return readPort(in); });
  if (!in.empty()) throw Error(ErrorCode::kRemote, "a host's report goes on behind its end");
  requireSense(report);
  return report;
}

}  // namespace tutti::preflight
