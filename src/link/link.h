// The two ends of a link, as an executor sees them.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "link/fifo.h"

namespace tutti::link {

enum class Progress : uint8_t { kIdle, kAdvanced, kFailed };

// Moves what was posted, where the FIFO is not mapped into both ranks. Mapped memory has no driver.
// One driver serves both directions of an edge.
class Driver {
 public:
  virtual ~Driver() = default;
  // progress(), unless another thread is in it right now (a send and a receive on streams of their own share the edge).
  Progress drive() noexcept {
    if (busy_.test_and_set(std::memory_order_acquire)) return Progress::kIdle;
    const Progress result = progress();
    if (result == Progress::kAdvanced)  // one writer at a time: whoever holds busy_
      advances_.store(advances_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    busy_.clear(std::memory_order_release);  // pairs with the acquire above: the next thread sees the driver's state
    return result;
  }
  // What to sleep on: a descriptor, and what to wait for there; nothing where `events` is 0. Any thread: it waits while
  // another one is in progress(), which changes what the driver wants.
  struct Interest {
    int fd;
    short events;
  };
  Interest interest() noexcept;
  // How often it has advanced: changes also while a long slot crosses a slow network. Any thread.
  uint64_t advances() const noexcept { return advances_.load(std::memory_order_relaxed); }
  // Sends what the send end has posted and fills the receive end from what has arrived. Never blocks, never throws.
  virtual Progress progress() noexcept = 0;
  // True while something posted has not yet been handed to the network.
  virtual bool sending() const noexcept = 0;
  // A descriptor to sleep on, and what to wait for on it (POLLIN, POLLOUT): only what progress() would take or give.
  // By one thread at a time, as progress().
  virtual int pollFd() const noexcept = 0;
  virtual short pollEvents() const noexcept = 0;
  // After kFailed: what happened, with the peer's address.
  virtual std::string error() const = 0;

 private:
  std::atomic_flag busy_;
  std::atomic<uint64_t> advances_{0};
};

// Its error(), for who can not throw: kNoMemory, where there is none for it.
std::string whyFailed(const Driver& driver) noexcept;

// Wakes the owner of a bell if it sleeps. The sleeper counts in `sleeping` before it looks for work a last time, and it
// sleeps for a bounded time, so a ring that crosses with that look costs one such time and no hang.
void wake(Doorbell& bell) noexcept;
inline bool sleeps(const Doorbell* bell) noexcept {
  return bell && bell->sleeping.load(std::memory_order_relaxed) != 0;
}
inline void ring(Doorbell* bell) noexcept {
  if (sleeps(bell)) wake(*bell);
}

// When to wake a peer that sleeps: at once, unless it is patient. Who shares its core with computation sleeps at every
// wait, and two changes of who runs there cost as much as a slot's work: it wakes to half a FIFO of work, or when the
// other one stops.
struct Wakeups {
  uint32_t owed = 0;
  // After a slot. True: at its next stop the caller has to settle().
  bool owe(Doorbell* bell, uint32_t depth) noexcept {
    if (!sleeps(bell)) [[likely]]
      return false;
    const auto load = [](const std::atomic<uint32_t>& count) { return count.load(std::memory_order_relaxed); };
    if (++owed < depth / 2 && load(bell->patient) >= load(bell->sleeping)) return true;
    settle(bell);
    return false;
  }
  void settle(Doorbell* bell) noexcept {
    if (std::exchange(owed, 0) != 0) ring(bell);
  }
};

// Asks for a line to be fetched for writing. The next slot's header is in the peer's cache since it was last read
// there; taking it back while this rank waits anyway keeps that trip out of the next post.
inline void own([[maybe_unused]] const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#endif
}

struct SendEnd {
  Fifo fifo;
  uint64_t posted = 0;           // slots posted so far; the next slot's number
  uint64_t knownReleased = 0;    // a lower bound of *fifo.released
  Doorbell* peerBell = nullptr;  // null: the peer does not sleep on this link's memory
  Driver* driver = nullptr;      // null: mapped memory
  int peer = -1;
  Wakeups wakeups{};

  bool hasRoom() noexcept {
    if (posted - knownReleased < fifo.depth) return true;
    // Acquire: pairs with RecvEnd::release; the receiver has read the slot that is about to be overwritten.
    knownReleased = fifo.released->value.load(std::memory_order_acquire);
    return posted - knownReleased < fifo.depth;
  }
  bool drained() noexcept { return fifo.released->value.load(std::memory_order_acquire) == posted; }
  SlotHeader& header() noexcept { return fifo.headers[posted & (fifo.depth - 1)]; }
  // Where the payload of the next slot goes; needs hasRoom().
  std::byte* place(size_t bytes) noexcept {
    return bytes <= kInlineBytes ? header().inlined : fifo.slots + (posted & (fifo.depth - 1)) * size_t{fifo.slotBytes};
  }
  void post(const Fingerprint& fingerprint, uint32_t bytes) noexcept {
    postQuietly(fingerprint, bytes);
    ring(peerBell);
  }
  // Who sleeps is not woken for it.
  void postQuietly(const Fingerprint& fingerprint, uint32_t bytes) noexcept {
    SlotHeader& line = header();
    line.fingerprint = fingerprint;
    line.bytes = bytes;
    // Release: pairs with RecvEnd::ready; header and payload are visible to whoever sees the number.
    line.sequence.store(++posted, std::memory_order_release);
    own(&header());
  }
};

struct RecvEnd {
  Fifo fifo;
  uint64_t received = 0;  // slots taken so far; the next slot's number
  Doorbell* peerBell = nullptr;
  Driver* driver = nullptr;
  int peer = -1;
  Wakeups wakeups{};

  const SlotHeader& header() const noexcept { return fifo.headers[received & (fifo.depth - 1)]; }
  // Acquire: pairs with SendEnd::post.
  bool ready() const noexcept { return header().sequence.load(std::memory_order_acquire) == received + 1; }
  // Needs ready().
  Said said() const noexcept {
    const SlotHeader& line = header();
    const Said copy{line.fingerprint, line.bytes};
    std::atomic_signal_fence(std::memory_order_acq_rel);  // the compiler reads nothing of it again
    return copy;
  }
  // Where so many bytes of payload are; needs ready(). As many as there must be, whatever the header says by now.
  const std::byte* payload(size_t bytes) const noexcept {
    return bytes <= kInlineBytes ? header().inlined
                                 : fifo.slots + (received & (fifo.depth - 1)) * size_t{fifo.slotBytes};
  }
  void release() noexcept {
    releaseQuietly();
    ring(peerBell);
  }
  void releaseQuietly() noexcept {
    // Release: pairs with SendEnd::hasRoom; everything read from the slot has been read.
    fifo.released->value.store(++received, std::memory_order_release);
  }
};

// Both directions between this rank and one peer on one channel, and whatever must live as long as they do.
class Connection {
 public:
  virtual ~Connection() = default;
  SendEnd send;
  RecvEnd recv;
  std::span<std::byte> memory;  // that holds both FIFOs
  // Bytes of memory that this rank accounts for (a region shared with the peer counts half on each side).
  size_t memoryBytes = 0;
  std::string transport;  // its name
};

}  // namespace tutti::link
