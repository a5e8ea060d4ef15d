#include "gpu/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "team/config.h"

namespace tutti::gpu {
namespace {

using topology::PeerInfo;

bool wishes(const PeerInfo& info, comm::EngineWish wish) { return info.gpuEngine == static_cast<uint8_t>(wish); }

// Kernels of one process wait for each other while both are on the GPU. Those of different processes take turns there:
// one that waits for the other would hold the GPU for its whole turn, again and again.
std::optional<std::string> sharing(std::span<const PeerInfo> infos) {
  std::map<uint64_t, size_t> first;
  for (size_t rank = 0; rank < infos.size(); ++rank) {
    const size_t other = first.emplace(infos[rank].gpu, rank).first->second;
    if (infos[other].processToken != infos[rank].processToken)
      return fmt::format("ranks {} and {} share a GPU from different processes (pid {} and {})", other, rank,
                         infos[other].pid, infos[rank].pid);
  }
  return std::nullopt;
}

// Streams of one process that share a hardware queue wait for each other, whatever they wait for themselves: each rank
// needs one, and the user's stream, which waits for them, another, and one must be left for the rest.
std::optional<std::string> crowding(std::span<const PeerInfo> infos) {
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> ranks;  // of a process on a GPU
  for (size_t rank = 0; rank < infos.size(); ++rank) {
    const PeerInfo& info = infos[rank];
    const uint32_t here = ++ranks[{info.gpu, info.processToken}];
    if (here + 2 > info.gpuQueues)
      return fmt::format(
          "the process of rank {} (pid {}) has {} or more ranks on one GPU, whose {} hardware queues "
          "let {} wait at once (CUDA_DEVICE_MAX_CONNECTIONS sets them, up to 32)",
          rank, info.pid, here, info.gpuQueues, info.gpuQueues < 2 ? 0 : info.gpuQueues - 2);
  }
  return std::nullopt;
}

// Why operations can not wait in streams; nothing when they can.
std::optional<std::string> obstacle(std::span<const PeerInfo> infos) {
  for (size_t rank = 0; rank < infos.size(); ++rank) {
    if (infos[rank].gpuQueues == 0)
      return fmt::format("streams on the GPU of rank {} can not wait for words in memory", rank);
    if (infos[rank].hostId != infos[0].hostId)
      return fmt::format(
          "rank {} is on another host than rank 0, and streams reach the memory of GPUs of one host alone", rank);
  }
  return crowding(infos);
}

DeviceEngines streamsAlone(std::span<const PeerInfo> infos, const std::string& shared) {
  std::optional<std::string> why = obstacle(infos);
  if (std::ranges::any_of(infos, [](const PeerInfo& info) { return wishes(info, comm::EngineWish::kKernel); }))
    why = "TUTTI_ENGINE=kernel forbids to wait in streams instead";
  if (why)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}, which take turns on it instead of running side by side, and {}: put the ranks of one "
                            "GPU into one process",
                            shared, *why));
  return {false, true, fmt::format("{}: all operations wait in streams", shared)};
}

// What the users of all ranks want alike: kAuto where they differ.
comm::EngineWish wishOf(std::span<const PeerInfo> infos, std::string& why) {
  const auto same = [&](const PeerInfo& info) { return info.gpuEngine == infos[0].gpuEngine; };
  if (std::ranges::all_of(infos, same)) return static_cast<comm::EngineWish>(infos[0].gpuEngine);
  why = "TUTTI_ENGINE is not the same on every rank: kernels run all operations";
  return comm::EngineWish::kAuto;
}

}  // namespace

DeviceEngines enginesFor(std::span<const PeerInfo> infos) {
  if (const auto shared = sharing(infos)) return streamsAlone(infos, *shared);
  DeviceEngines engines;
  const comm::EngineWish wish = wishOf(infos, engines.why);
  if (wish != comm::EngineWish::kCopy && wish != comm::EngineWish::kStream) return engines;
  if (const auto why = obstacle(infos)) return {true, false, fmt::format("{}: kernels run all operations", *why)};
  if (wish == comm::EngineWish::kStream) return {false, true, "TUTTI_ENGINE=stream: all operations wait in streams"};
  return {true, true, "TUTTI_ENGINE=copy: what only moves data waits in streams, reductions in kernels"};
}

}  // namespace tutti::gpu
