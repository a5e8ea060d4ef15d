// What the user asked for, as plain data, already checked by src/api.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "engine/lane.h"
#include "schedule/schedule.h"

namespace tutti::comm {

// Elements of a call, of all ranks' parts together. A slot tells them in so many bits (link::Fingerprint): cut, two
// counts that differ could look the same.
inline constexpr size_t kMostElements = (size_t{1} << 48) - 1;

// Tables of the v-variants: elements, one entry a rank. Of a gather-v and a scatter-v the root has those of all ranks;
// elsewhere the own count stands alone.
struct Tables {
  std::vector<size_t> inputCounts, inputOffsets, outputCounts, outputOffsets;
};

struct Call {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kInt8;
  ReduceOp op = ReduceOp::kSum;
  uint64_t factor = 0;             // of a pre-mul-sum
  const void* factorAt = nullptr;  // where the factor is when a kernel comes to it, if not null
  int root = 0;                    // or the peer of a send or receive
  bool sends = false;              // kSendRecv: which side
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  size_t count = 0;  // elements: the whole message, or one rank's part
  std::shared_ptr<const Tables> tables;

  // How many elements a rank sends another, and expects of it.
  struct PairCounts {
    uint64_t sent = 0, expected = 0;
    friend bool operator==(const PairCounts&, const PairCounts&) = default;
  };

  // Bytes that the plan goes by; the same on every rank.
  size_t planBytes(int ranks) const noexcept;
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
  uint16_t countsDigest() const noexcept;
};

// The same with the plan by which it runs.
link::Fingerprint planned(link::Fingerprint call, const schedule::Schedule& schedule, uint32_t channels) noexcept;

// "barrier #3", "all-gather-v #4 (float, 300 elements in all)"
std::string describe(const link::Fingerprint& fingerprint);
// "send to rank 3 #5 (float, 12 elements)", "receive from rank 3 #5 (...)"
std::string describeMessage(bool sends, int peer, const link::Fingerprint& fingerprint);

// "ring over 2 channels"
std::string describePlan(const link::Fingerprint& fingerprint);

// The call as a lane sees it. A slot carries at most `chunkBytes` of each segment.
engine::LaneWork toWork(const Call& call, uint64_t number, const schedule::Schedule& schedule, size_t chunkBytes,
                        uint32_t channel, uint32_t channels) noexcept;

}  // namespace tutti::comm
