// What the user asked for, as plain data, already checked by src/api.
#pragma once
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine/lane.h"
#include "schedule/rules.h"
#include "team/config.h"

namespace tutti::comm {

// Elements of a call, of all ranks' parts together. A slot tells them in so many bits (link::Fingerprint): cut, two
// counts that differ could look the same.
inline constexpr size_t kMostElements = (size_t{1} << 48) - 1;

// Tables of the v-variants: elements, one entry a rank. Of a gather-v and a scatter-v the root has those of all ranks;
// elsewhere the own count stands alone.
struct Tables {
  std::vector<size_t> inputCounts, inputOffsets, outputCounts, outputOffsets;
};

// What a call asks of its plan, beside what the communicator's configuration does. The same on every rank; plans are
// looked up by it (bits()).
struct alignas(uint32_t) PlanWish {
  schedule::Allowed algorithms;  // those that the collective has; nothing said: as the configuration has it
  uint8_t channels : 7 = 0;      // 0: the same
  bool reproducible : 1 = false;
  uint8_t unused = 0;

  // As they lie in memory: every call asks.
  uint32_t bits() const noexcept { return std::bit_cast<uint32_t>(*this); }
  // With what the configuration says where the call does not.
  schedule::Allowed algorithmsFrom(schedule::Allowed set) const noexcept {
    return algorithms.says() ? algorithms : set;
  }
  int channelsFrom(int set) const noexcept { return channels != 0 ? channels : set; }
};
static_assert(sizeof(PlanWish) == sizeof(uint32_t) && schedule::kMostChannels < 1 << 7);

struct BoundPlan;

// What an executor keeps of a persistent call once it is ready.
struct Readied {
  BoundPlan* plan = nullptr;  // on the host. Written and read by calls in their turn
};

struct Call {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kInt8;
  ReduceOp op = ReduceOp::kSum;
  uint64_t factor = 0;             // of a pre-mul-sum
  const void* factorAt = nullptr;  // where the factor is when a kernel comes to it, if not null
  int root = 0;                    // or the peer of a send or receive
  bool sends = false;              // kSendRecv: which side
  bool onlyReadies = false;        // moves nothing: what runs the call is made ready, and kept in `readied`
  bool isKept = false;             // stays where it is, and the same, for as long as `readied` has its plan
  PlanWish wish;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  size_t count = 0;  // elements: the whole message, or one rank's part
  std::shared_ptr<const Tables> tables;
  Readied* readied = nullptr;  // of a persistent call; whoever runs it sees to its life
  uint64_t tag = 0;            // of the caller's own meaning; 0: none
  // How long it may take from its turn on; 0: as long as the configuration says.
  std::chrono::milliseconds timeout{0};

  // How many elements a rank sends another, and expects of it.
  struct PairCounts {
    uint64_t sent = 0, expected = 0;
    friend bool operator==(const PairCounts&, const PairCounts&) = default;
  };

  // Bytes that the plan goes by; the same on every rank.
  size_t planBytes(int ranks) const noexcept;
  // Of what this rank's call says it moves: its count, or those of its tables together.
  size_t messageBytes() const noexcept { return (tables ? countOfTables() : count) * sizeOf(type); }
  // Whether its result depends on the order in which operands are combined: sums are rounded, and of zeros or numbers
  // that are none the first one met stays.
  bool dependsOnOrder() const noexcept { return reduces(collective) && rowOf(type).isFloat(); }
  // "all-reduce #42 (float, 262144 elements, sum)"
  std::string describe(uint64_t number) const;
  link::Fingerprint fingerprint(uint64_t number) const noexcept;
  // On every rank, so that each can tell the others. Where counts are private nobody knows.
  bool isOfNothing() const noexcept;
  // Between `self` and that rank, where counts are private; nullopt for a rank that there is not.
  std::optional<PairCounts> countsWith(int self, int peer) const noexcept;

 private:
  size_t sharedCount() const noexcept;
  size_t countOfTables() const noexcept;
  uint16_t countsDigest() const noexcept;
};

// What a fingerprint says of its call.
inline Collective collectiveOf(const link::Fingerprint& call) noexcept {
  return static_cast<Collective>(call.kindAndType >> 4);
}
inline DataType typeOf(const link::Fingerprint& call) noexcept { return static_cast<DataType>(call.kindAndType & 15); }

// As it goes with slots: a tag is in it as a digest, which is 0 for none alone. Once more undoes it.
link::Fingerprint tagged(link::Fingerprint call, uint64_t tag) noexcept;

// The same with the plan by which it runs.
link::Fingerprint planned(link::Fingerprint call, const schedule::Schedule& schedule, uint32_t channels) noexcept;

// Of fingerprints that no tag is in.
// "barrier #3", "all-gather-v #4 (float, 300 elements in all)", "barrier #3 (tag 42)"
std::string describe(const link::Fingerprint& fingerprint, uint64_t tag = 0);
// "send to rank 3 #5 (float, 12 elements)", "receive from rank 3 #5 (...)"
std::string describeMessage(bool sends, int peer, const link::Fingerprint& fingerprint, uint64_t tag = 0);

// "ring over 2 channels"
std::string describePlan(const link::Fingerprint& fingerprint);

// The call as a lane sees it. A slot carries at most `chunkBytes` of each segment. `mark`: its fingerprint, planned.
engine::LaneWork toWork(const Call& call, const link::Fingerprint& mark, const schedule::Schedule& schedule,
                        size_t chunkBytes, uint32_t channel, uint32_t channels) noexcept;
inline engine::LaneWork toWork(const Call& call, uint64_t number, const schedule::Schedule& schedule, size_t chunkBytes,
                               uint32_t channel, uint32_t channels) noexcept {
  return toWork(call, planned(call.fingerprint(number), schedule, channels), schedule, chunkBytes, channel, channels);
}

// Whether only what adds in the order of the ranks may run the call.
inline bool isReproducible(const Config& config, const Call& call) noexcept {
  return (config.reproducible || call.wish.reproducible) && call.dependsOnOrder();
}

}  // namespace tutti::comm
