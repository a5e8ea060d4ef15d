#include "site/at_hand.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "detect/complete.h"
#include "detect/machine_at_hand.h"
#include "exchange/system_file.h"
#include "process/log.h"
#include "process/process_object.h"
#include "rings/host_links.h"
#include "topology/bus_id.h"

namespace tutti::site {

using topology::DeviceKind;
using topology::PeerInfo;
using topology::System;

namespace {

// The machine stays as it is, and communicators are many.
class Detected {
 public:
  System devices() {
    const std::lock_guard lock(mutex_);
    if (!devices_) devices_ = detect::detectDevices();
    return *devices_;
  }
  bool isFirstWarningOf(const std::string& file) {
    const std::lock_guard lock(mutex_);
    return warned_.insert(file).second;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::optional<System> devices_;
  std::set<std::string> warned_;
};

struct Host {
  System system;
  std::string source;
};

Host connected(System devices, std::string source) {
  connect(devices);
  return {std::move(devices), std::move(source)};
}

// A pipe would keep its reader waiting.
void requireFile(const std::string& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none))
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is no file", path));
}

Host hostAtHand(const std::string& file) {
  auto& detected = ofThisProcess<Detected>();
  if (!file.empty()) try {
      requireFile(file);
      return connected(detect::completed(topology::readDevicesFile(file), detected.devices()),
                       fmt::format("TUTTI_TOPO_FILE={}", file));
    } catch (const Error& error) {
      if (detected.isFirstWarningOf(file))
        log::warn("TUTTI_TOPO_FILE={} is not used, this machine is taken as it is detected: {}", file, error.what());
    }
  return connected(detected.devices(), "as detected");
}

// -1: it is not there.
int gpuAt(const System& system, const std::string& busId) {
  const auto wanted = topology::parseBusId(busId);
  for (const int gpu : devicesOf(system, DeviceKind::kGpu)) {
    const auto& pci = system.devices[gpu].pci;
    if (wanted && pci && topology::parseBusId(pci->busId) == wanted) return gpu;
  }
  return -1;
}

std::vector<int> ranksBeside(std::span<const PeerInfo> infos, int rank) {
  std::vector<int> ranks;
  for (size_t other = 0; other < infos.size(); ++other)
    if (infos[other].hostId == infos[static_cast<size_t>(rank)].hostId) ranks.push_back(static_cast<int>(other));
  return ranks;
}

// On one host links decide something between two GPUs.
bool areToBeKnown(std::span<const PeerInfo> infos) {
  return std::ranges::any_of(
      infos, [&](const PeerInfo& info) { return info.hostId != infos[0].hostId || info.gpu != infos[0].gpu; });
}

}  // namespace

HostWord wordOf(const System& system, const std::string& source, std::span<const PeerInfo> infos, int rank) {
  HostWord word;
  word.source = source;
  const std::vector<int> ranks = ranksBeside(infos, rank);
  std::vector<int> gpus;
  for (const int one : ranks) {
    const std::string& busId = infos[static_cast<size_t>(one)].gpuBusId;
    gpus.push_back(gpuAt(system, busId));
    if (gpus.back() >= 0) continue;
    word.why = fmt::format("the GPU of rank {} ({}) is not among the {} of {}'s links ({})", one,
                           busId.empty() ? "of no known place" : busId, devicesOf(system, DeviceKind::kGpu).size(),
                           infos[static_cast<size_t>(rank)].hostName, source);
    return word;
  }
  const rings::HostLinks links = rings::hostLinks(system, gpus);
  for (const int place : links.order) word.order.push_back(ranks[static_cast<size_t>(place)]);
  word.asNumbered = links.asNumbered, word.along = links.along;
  word.ringGBs = links.ringGBs, word.pairGBs = links.pairGBs;
  word.nicGBs = links.nicGBs, word.networkGBs = links.networkGBs;
  return word;
}

Bytes wordAtHand(std::span<const PeerInfo> infos, int rank, const std::string& file) {
  if (!areToBeKnown(infos) || ranksBeside(infos, rank).front() != rank) return {};
  try {
    const Host host = hostAtHand(file);
    return encode(wordOf(host.system, host.source, infos, rank));
  } catch (const Error& error) {
    HostWord word;
    word.why = error.what();
    return encode(word);
  }
}

}  // namespace tutti::site
