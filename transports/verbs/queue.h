// The narrow port to RDMA: one reliable queue pair, and a dozen calls. Behind it are libibverbs (device_queue.cc) and,
// in the tests, a device in memory that delays, refuses and breaks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transports/verbs/memory_cache.h"

namespace tutti::verbs {

// What the other end has to know of a queue pair and of the memory that it may write to. As it lies in a greeting.
struct QueueAddress {
  std::array<uint8_t, 16> gid{};
  uint64_t memory = 0;    // where the edge's memory begins
  uint64_t slots = 0;     // where its slots begin, if they lie in a GPU
  uint32_t key = 0;       // that allows writing to the memory
  uint32_t slotsKey = 0;  // and to those slots
  uint32_t number = 0;    // of the queue pair
  uint32_t first = 0;     // packet number to begin with, in the first life
  uint16_t lid = 0;
  uint8_t mtu = 0;         // as verbs count: 1 is 256 bytes, 5 is 4096
  uint8_t isEthernet = 0;  // RoCE; else InfiniBand
};
static_assert(sizeof(QueueAddress) == 56);

// One write into the peer's memory. Its parts are places within the edge's memory, or within its slots where these lie
// in a GPU, which both ends have registered and which are laid out alike at both.
struct Write {
  const void* from = nullptr;      // in this end's memory, unless `copied`
  uint32_t bytes = 0;              // 0 is allowed with a note
  size_t to = 0;                   // from the begin of the peer's memory, or slots
  bool inSlots = false;            // both places are in slots of GPUs
  std::optional<uint32_t> note{};  // reaches the peer once the write, and all before it, are there
  std::optional<uint32_t> key{};   // `from` is not in the edge's memory, but in other that has this one
  bool copied = false;             // the bytes are taken at once; kMostCopied at most
  bool signalled = false;
};

inline constexpr uint32_t kMostCopied = 64;

struct Completion {
  enum class What : uint8_t { kWritten, kNote, kBroken };
  What what = What::kBroken;
  bool receive = false;  // of what waits for notes
  uint32_t life = 0;     // of the queue pair
  uint32_t note = 0;
  uint64_t write = 0;  // kWritten: how many writes of this life are done, from its first to this one
  int status = 0;      // kBroken: as verbs number them; textOf() has words
};

class Queue {
 public:
  virtual ~Queue() = default;
  virtual std::string name() const = 0;  // "mlx5_0:1"
  virtual QueueAddress address() const = 0;

  // From any state into a new life, ready to be written to and to write. False, with errno, when the system refuses.
  virtual bool connect(const QueueAddress& peer, uint32_t life) noexcept = 0;
  // Lets so many more notes arrive; returns for how many that was granted, with errno when it is fewer.
  virtual int expectNotes(int count) noexcept = 0;
  // Begins a write. False, with errno, when the system refuses.
  virtual bool write(const Write& write) noexcept = 0;
  // What has happened since, at most as much as there is room for; -1, with errno, when the device fails.
  virtual int poll(std::span<Completion> completions) noexcept = 0;
  // Once it returns, nothing of this end's memory is read any more. Nothing of this queue pair reaches the peer, or
  // this end's memory, once it has reported each note that is expected as come or broken.
  virtual void stop() noexcept = 0;

  // Of its device, by whose keys it writes from other memory than the edge's. Never null.
  virtual std::shared_ptr<MemoryCache> memory() const = 0;

  virtual bool portIsActive() noexcept = 0;
  // A descriptor that becomes readable with the next completion after arm(); -1 where there is none.
  virtual int pollFd() const noexcept = 0;
  virtual bool arm() noexcept = 0;
  virtual std::string textOf(int status) const = 0;
};

}  // namespace tutti::verbs
