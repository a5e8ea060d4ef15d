// One operation of a group of ranks as plain data, and each rank's part of it: buffers with what must be in them
// afterwards, the call, and the comparison.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "faults/support/rounding.h"
#include "faults/support/values.h"
#include "tutti/tutti.h"

namespace tutti::faults {

enum class Kind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kAllGatherV,
  kReduceScatterV,
  kAllToAllV,
  kGatherV,
  kScatterV,
  kBarrier,
  kMessage,  // from `root` to another rank
  kMessages  // a group of sends and receives between any ranks
};
inline constexpr int kKinds = 16;
inline constexpr int kCollectiveKinds = 14;  // those before the messages

const char* nameOf(Kind kind) noexcept;  // the library's own word in error texts
bool reduces(Kind kind) noexcept;
bool hasRoot(Kind kind) noexcept;

enum class Asking : uint8_t { kNothing, kRequest, kPersistent };

struct Operation {
  Kind kind = Kind::kAllReduce;
  tuttiDataType_t type = tuttiFloat32;
  int op = tuttiSum;  // or kPreMulSum
  size_t count = 0;   // of the whole or of a rank's part; of v-variants and messages: what the counts go up to
  int root = 0;
  bool inPlace = false;  // where it can be; in an all-to-all on some ranks
  uint64_t salt = 0;     // of values, counts and displacements
  bool rounds = false;   // of a reduction of numbers with a fraction: what comes out is known but for roundings
  // Of the call's own configuration. Nothing of it: a plain call.
  const char* algorithm = nullptr;  // for a kind that has it
  int channels = 0;
  uint64_t tag = 0;
  Asking asking = Asking::kNothing;
  bool configured() const noexcept { return algorithm || channels != 0 || tag != 0 || asking != Asking::kNothing; }
  std::string describe() const;
};

// Memory of a call, with a margin on both sides that nobody may touch. It comes from the default memory resource, which
// a test on a GPU sets to one of memory that both reach.
struct Block {
  static constexpr size_t kMargin = 64;
  std::pmr::vector<std::byte> memory;
  size_t start = 0;
  void lay(size_t bytes, size_t skew);
  std::byte* data() noexcept { return memory.data() + start; }
};

// One rank's part of one operation. It must live until the call is done.
class Part {
 public:
  Part(const Operation& operation, int rank, int ranks);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part();

  tuttiResult_t issue(tuttiComm_t comm, tuttiStream_t stream);
  // After success: the first wrong element, in words. Empty when all is right.
  std::string check();
  // After success: of the bits that were received.
  uint64_t digest() const noexcept;

 private:
  struct Transfer {  // one message of kMessage and kMessages
    int peer;
    bool sends;
    size_t offset, count;
  };
  void lay();
  void layMoves();
  void layReduction();
  void contribute(size_t count);
  void expectReduced(size_t first, size_t count);
  void layAllGatherV();
  void layReduceScatterV();
  void layAllToAllV();
  void layGatherV();
  void layScatterV();
  size_t drawParts();
  void layMessages();
  bool exchangesInPlace() const noexcept;
  void place(size_t sendElements, size_t recvElements, bool shared, size_t within);
  void raw(std::byte* to, int from, int dest, size_t count, int number = 0) const;
  size_t drawCount(int from, int to, int number = 0) const;
  tuttiResult_t issueVariant(tuttiComm_t comm, tuttiStream_t stream, const tuttiCallConfig_t* config);
  tuttiResult_t issueMessages(tuttiComm_t comm, tuttiStream_t stream);
  tuttiResult_t issueOne(tuttiComm_t comm, tuttiStream_t stream);
  // The configuration of the next call, null for none; and what is to be done once that was made.
  const tuttiCallConfig_t* configure();
  tuttiResult_t made(tuttiResult_t result);
  tuttiResult_t issueReduction(tuttiComm_t comm, tuttiStream_t stream);
  std::string compare(Block& block, const std::vector<std::byte>& image, const char* name) const;
  int messageStep() const;
  void seal();  // what is sent is laid out: the images begin as what is there now
  // Where in the image of what must be received, and in what is sent.
  std::byte* want(size_t element) noexcept;
  std::byte* give(size_t element) noexcept { return send_ + element * width_; }

  const Operation operation_;
  int rank_, ranks_;
  size_t width_;
  Reduction reduction_;
  Rounding rounding_;
  size_t reducedFirst_ = 0, reducedCount_ = 0;  // what this rank receives of a reduction
  Block sendBlock_, recvBlock_;
  std::byte* send_ = nullptr;
  std::byte* recv_ = nullptr;
  bool shared_ = false;
  std::vector<std::byte> sendImage_, recvImage_;  // what the blocks must hold afterwards
  std::vector<size_t> counts_, offsets_, recvCounts_, recvOffsets_;
  std::vector<Transfer> transfers_;
  tuttiCallConfig_t config_ = TUTTI_CALL_CONFIG_INITIALIZER;
  tuttiRequest_t request_ = nullptr;  // of the next call
  std::vector<tuttiRequest_t> requests_;
};

}  // namespace tutti::faults
