#include "gpu/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "team/config.h"

namespace tutti::gpu {
namespace {

using topology::Card;

bool wishes(const Card& card, comm::EngineWish wish) { return card.gpuEngine == static_cast<uint8_t>(wish); }

// Kernels of one process wait for each other while both are on the GPU. Those of different processes take turns there:
// one that waits for the other would hold the GPU for its whole turn, again and again.
std::optional<std::string> sharing(std::span<const Card> cards) {
  std::map<uint64_t, size_t> first;
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const size_t other = first.emplace(cards[rank].gpu, rank).first->second;
    if (cards[other].processToken != cards[rank].processToken)
      return fmt::format("ranks {} and {} share a GPU from different processes (pid {} and {})", other, rank,
                         cards[other].pid, cards[rank].pid);
  }
  return std::nullopt;
}

// Streams of one process that share a hardware queue wait for each other, whatever they wait for themselves: each rank
// needs one, and the user's stream, which waits for them, another, and one must be left for the rest.
std::optional<std::string> crowding(std::span<const Card> cards) {
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> ranks;  // of a process on a GPU
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const Card& card = cards[rank];
    const uint32_t here = ++ranks[{card.gpu, card.processToken}];
    if (here + 2 > card.gpuQueues)
      return fmt::format(
          "the process of rank {} (pid {}) has {} or more ranks on one GPU, whose {} hardware queues "
          "let {} wait at once (CUDA_DEVICE_MAX_CONNECTIONS sets them, up to 32)",
          rank, card.pid, here, card.gpuQueues, card.gpuQueues < 2 ? 0 : card.gpuQueues - 2);
  }
  return std::nullopt;
}

// Why operations can not wait in streams; nothing when they can.
std::optional<std::string> obstacle(std::span<const Card> cards) {
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].gpuQueues == 0)
      return fmt::format("streams on the GPU of rank {} can not wait for words in memory", rank);
    if (cards[rank].hostId != cards[0].hostId)
      return fmt::format(
          "rank {} is on another host than rank 0, and streams reach the memory of GPUs of one host alone", rank);
  }
  return crowding(cards);
}

DeviceEngines streamsAlone(std::span<const Card> cards, const std::string& shared) {
  std::optional<std::string> why = obstacle(cards);
  if (std::ranges::any_of(cards, [](const Card& card) { return wishes(card, comm::EngineWish::kKernel); }))
    why = "TUTTI_ENGINE=kernel forbids to wait in streams instead";
  if (why)
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("{}, which take turns on it instead of running side by side, and {}: put the ranks of one "
                            "GPU into one process",
                            shared, *why));
  return {false, true, fmt::format("{}: all operations wait in streams", shared)};
}

// What the users of all ranks want alike: kAuto where they differ.
comm::EngineWish wishOf(std::span<const Card> cards, std::string& why) {
  const auto same = [&](const Card& card) { return card.gpuEngine == cards[0].gpuEngine; };
  if (std::ranges::all_of(cards, same)) return static_cast<comm::EngineWish>(cards[0].gpuEngine);
  why = "TUTTI_ENGINE is not the same on every rank: kernels run all operations";
  return comm::EngineWish::kAuto;
}

}  // namespace

DeviceEngines enginesFor(std::span<const Card> cards) {
  if (const auto shared = sharing(cards)) return streamsAlone(cards, *shared);
  DeviceEngines engines;
  const comm::EngineWish wish = wishOf(cards, engines.why);
  if (wish != comm::EngineWish::kCopy && wish != comm::EngineWish::kStream) return engines;
  if (const auto why = obstacle(cards)) return {true, false, fmt::format("{}: kernels run all operations", *why)};
  if (wish == comm::EngineWish::kStream) return {false, true, "TUTTI_ENGINE=stream: all operations wait in streams"};
  return {true, true, "TUTTI_ENGINE=copy: what only moves data waits in streams, reductions in kernels"};
}

}  // namespace tutti::gpu
