#include "topology/card.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
constexpr uint8_t kVersion = 4;
constexpr size_t kMaxName = 256;

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

uint64_t findHostId(const std::string& hostName) {
  if (const auto given = settings::find("TUTTI_HOST_ID")) return hashOf("given:" + *given);
  std::string identity = lineOf("/proc/sys/kernel/random/boot_id");
  if (identity.empty()) identity = hostName;
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

// Asked once: the cores of a process do not change, and hwloc takes milliseconds.
const HostMachine& thisMachine() {
  struct Found {
    const HostMachine machine = detectMachine();
  };
  return ofThisProcess<Found>().machine;
}

// Whole cores: on the rest of a share nobody spins for long.
uint32_t usableCores(const HostMachine& machine, const std::string& root) {
  const auto cores = static_cast<double>(machine.cores.size());
  return static_cast<uint32_t>(std::max(1.0, std::min(cores, processorQuota(root).value_or(cores))));
}

}  // namespace

Card describeSelf(const std::string& root) {
  Card card;
  std::array<char, kMaxName> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) card.hostName = plainText(name.data(), kMaxName);
  card.hostId = findHostId(card.hostName);
  card.processToken = findProcessToken();
  card.pid = ::getpid();
  card.uid = ::getuid();
  const HostMachine& machine = thisMachine();
  card.cores = usableCores(machine, root);
  if (machine.nodes.size() == 1) card.numaNode = machine.nodes.front().number;
  return card;
}

bool haveCoresOfTheirOwn(std::span<const Card> cards, int rank) {
  const Card& self = cards[static_cast<size_t>(rank)];
  return std::ranges::count(cards, self.hostId, &Card::hostId) <= static_cast<std::ptrdiff_t>(self.cores);
}

std::vector<std::byte> encode(const Card& card) {
  Writer out;
  out.value(kMagic).value(kVersion).text(card.hostName);
  out.value(card.hostId).value(card.processToken).value(card.pid).value(card.uid).value(card.cores);
  out.value(card.numaNode).value(card.device).value(card.gpu).value(card.gpuBlocks);
  return out.value(card.gpuQueues).value(card.gpuEngine).value<uint8_t>(card.unixSockets).take();
}

Card decodeCard(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.value<uint32_t>() != kMagic || in.value<uint8_t>() != kVersion)
    throw Error(ErrorCode::kRemote,
                fmt::format("a rank's card is not of version {}: do all ranks run the same tutti?", kVersion));
  Card card;
  card.hostName = in.text();
  card.hostId = in.value<uint64_t>();
  card.processToken = in.value<uint64_t>();
  card.pid = in.value<int32_t>();
  card.uid = in.value<uint32_t>();
  card.cores = in.value<uint32_t>();
  card.numaNode = in.value<int32_t>();
  card.device = in.value<int32_t>();
  card.gpu = in.value<uint64_t>();
  card.gpuBlocks = in.value<uint32_t>();
  card.gpuQueues = in.value<uint32_t>();
  card.gpuEngine = in.value<uint8_t>();
  card.unixSockets = in.value<bool>();
  // It stands in logs: whoever made the card has seen to it that it may.
  const bool plain = plainText(card.hostName, kMaxName) == card.hostName;
  if (!in.empty() || !plain || card.cores == 0)
    throw Error(ErrorCode::kRemote, "a rank's card holds what no card holds: do all ranks run the same tutti?");
  return card;
}

}  // namespace tutti::topology
