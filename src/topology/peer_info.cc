#include "topology/peer_info.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"
#include "base/plain_text.h"
#include "process/process_object.h"
#include "settings/settings.h"
#include "topology/machine.h"
#include "topology/quota.h"

namespace tutti::topology {
namespace {

constexpr uint32_t kMagic = 0x64726163;  // "card"
constexpr uint8_t kVersion = 9;
constexpr size_t kMaxName = 256, kMostLacks = 16, kMostReason = 400, kMostBusId = 32, kMostCoreBytes = 1024;

// FNV-1a, for equality only.
uint64_t hashOf(std::string_view text) noexcept {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string lineOf(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string machineName(const std::string& hostName) {
  const std::string boot = lineOf("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? hostName : boot;
}

uint64_t findHostId(const std::string& hostName) {
  if (const auto given = settings::find("TUTTI_HOST_ID")) return hashOf("given:" + *given);
  std::string identity = machineName(hostName);
  struct stat space {};
  if (::stat("/proc/self/ns/net", &space) == 0) identity += "/" + std::to_string(space.st_ino);
  return hashOf(identity);
}

uint64_t randomToken() {
  uint64_t token = 0;
  if (::getrandom(&token, sizeof token, 0) != sizeof token)
    token = hashOf(std::to_string(::getpid()) + lineOf("/proc/self/stat"));
  return token;
}

uint64_t findProcessToken() {
  struct Drawn {
    const uint64_t token = randomToken();
  };
  return ofThisProcess<Drawn>().token;
}

// Asked once: the cores of a process do not change.
OwnCores coresOfThisProcess() {
  struct Found {
    const OwnCores cores = ownCores();
  };
  return ofThisProcess<Found>().cores;
}

// Whole cores: on the rest of a share nobody spins for long.
uint32_t usableCores(size_t count, const std::string& root) {
  const auto cores = static_cast<double>(count);
  return static_cast<uint32_t>(std::max(1.0, std::min(cores, processorQuota(root).value_or(cores))));
}

std::vector<std::byte> bitsOf(const std::vector<int>& cores) {
  std::vector<std::byte> bits;
  for (const int core : cores) {
    const auto place = static_cast<size_t>(core) / 8;
    if (core < 0 || place >= kMostCoreBytes) return {};
    if (bits.size() <= place) bits.resize(place + 1);
    bits[place] |= std::byte{1} << (core % 8);
  }
  return bits;
}

template <class Visit>
void forEachCore(const PeerInfo& rank, Visit visit) {
  for (size_t core = 0; core < 8 * rank.coreBits.size(); ++core)
    if ((rank.coreBits[core / 8] >> (core % 8) & std::byte{1}) != std::byte{0}) visit(core);
}

}  // namespace

PeerInfo describeSelf(const std::string& root) {
  PeerInfo info;
  std::array<char, kMaxName> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) info.hostName = plainText(name.data(), kMaxName);
  info.hostId = findHostId(info.hostName);
  info.machineId = hashOf(machineName(info.hostName));
  info.processToken = findProcessToken();
  info.pid = ::getpid();
  info.uid = ::getuid();
  const OwnCores own = coresOfThisProcess();
  info.cores = usableCores(own.numbers.size(), root);
  info.coreBits = bitsOf(own.numbers);
  info.numaNode = own.node;
  return info;
}

uint64_t machineIdOf(const PeerInfo& rank) noexcept { return rank.machineId != 0 ? rank.machineId : rank.hostId; }

size_t countOfCores(const PeerInfo& rank) noexcept {
  size_t count = 0;
  forEachCore(rank, [&](size_t) { ++count; });
  return count;
}

int firstCoreOf(const PeerInfo& rank) noexcept {
  int first = -1;
  forEachCore(rank, [&](size_t core) { first = first < 0 ? static_cast<int>(core) : first; });
  return std::max(first, 0);
}

int onlyCoreOf(const PeerInfo& rank) noexcept { return countOfCores(rank) == 1 ? firstCoreOf(rank) : -1; }

void CoreLoad::add(const PeerInfo& rank) {
  ++ranksOf_[rank.hostId];
  perCore_.resize(std::max(perCore_.size(), 8 * rank.coreBits.size()));
  const double share = 1 / static_cast<double>(std::max<size_t>(countOfCores(rank), 1));
  forEachCore(rank, [&](size_t core) { perCore_[core] += share; });
}

// Where nobody knows which they are, or less time is granted than they have, all ranks of the host are taken to share
// it.
double CoreLoad::of(const PeerInfo& rank) const {
  const size_t count = countOfCores(rank);
  const auto here = ranksOf_.find(rank.hostId);
  const bool isGranted = count == 0 || rank.cores < count;
  const double granted = isGranted && here != ranksOf_.end() ? double(here->second) / std::max(1u, rank.cores) : 0;
  if (count == 0) return granted;
  double sum = 0;
  forEachCore(rank, [&](size_t core) { sum += core < perCore_.size() ? perCore_[core] : 0; });
  constexpr double kExactly = 1 << 20;  // a sum of so many shares is not one more than it should be
  return std::max(granted, std::round(sum / static_cast<double>(count) * kExactly) / kExactly);
}

double ranksPerCore(std::span<const PeerInfo> infos, int rank) {
  const PeerInfo& self = infos[static_cast<size_t>(rank)];
  CoreLoad load;
  for (const PeerInfo& one : infos)
    if (machineIdOf(one) == machineIdOf(self)) load.add(one);
  return load.of(self);
}

std::vector<std::byte> encode(const PeerInfo& info) {
  Writer out;
  out.value(kMagic).value(kVersion).text(info.hostName);
  out.value(info.hostId)
      .value(info.machineId)
      .value(info.processToken)
      .value(info.pid)
      .value(info.uid)
      .value(info.cores);
  out.block(info.coreBits);
  out.value(info.numaNode).value(info.device).value(info.gpu).text(info.gpuBusId).value(info.gpuBlocks);
  out.value(info.gpuQueues).value(info.gpuEngine).value<uint8_t>(info.unixSockets).value<uint8_t>(info.wantsPreflight);
  out.value(info.networkMegabits).value(info.rdmaMegabits);
  const size_t lacks = std::min(info.lacks.size(), kMostLacks);
  out.value(static_cast<uint8_t>(lacks));
  size_t told = 0;
  for (auto lack = info.lacks.begin(); told < lacks; ++lack, ++told)
    out.text(lack->first).text(plainText(lack->second, kMostReason));
  return out.take();
}

PeerInfo decodePeerInfo(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.value<uint32_t>() != kMagic || in.value<uint8_t>() != kVersion)
    throw Error(ErrorCode::kRemote,
                fmt::format("a rank's card is not of version {}: do all ranks run the same tutti?", kVersion));
  PeerInfo info;
  info.hostName = in.text();
  info.hostId = in.value<uint64_t>();
  info.machineId = in.value<uint64_t>();
  info.processToken = in.value<uint64_t>();
  info.pid = in.value<int32_t>();
  info.uid = in.value<uint32_t>();
  info.cores = in.value<uint32_t>();
  const auto bits = in.block();
  info.coreBits.assign(bits.begin(), bits.end());
  info.numaNode = in.value<int32_t>();
  info.device = in.value<int32_t>();
  info.gpu = in.value<uint64_t>();
  info.gpuBusId = in.text();
  info.gpuBlocks = in.value<uint32_t>();
  info.gpuQueues = in.value<uint32_t>();
  info.gpuEngine = in.value<uint8_t>();
  info.unixSockets = in.value<bool>();
  info.wantsPreflight = in.value<bool>();
  info.networkMegabits = in.value<uint32_t>();
  info.rdmaMegabits = in.value<uint32_t>();
  const size_t lacks = in.value<uint8_t>();
  // It stands in logs: whoever made the card has seen to it that it may.
  const auto isPlain = [](const std::string& text, size_t most) { return plainText(text, most) == text; };
  bool plain = isPlain(info.hostName, kMaxName) && isPlain(info.gpuBusId, kMostBusId) && lacks <= kMostLacks;
  for (size_t i = 0; plain && i < lacks; ++i) {
    std::string name = in.text(), why = in.text();
    plain = isPlain(name, kMaxName) && isPlain(why, kMostReason);
    info.lacks.emplace(std::move(name), std::move(why));
  }
  if (!in.empty() || !plain || info.cores == 0 || info.coreBits.size() > kMostCoreBytes)
    throw Error(ErrorCode::kRemote, "a rank's card holds what no card holds: do all ranks run the same tutti?");
  return info;
}

}  // namespace tutti::topology
