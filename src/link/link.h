// The two ends of a link, as an executor sees them.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "link/fifo.h"
#include "link/gpu_slots.h"
#include "link/peer_memory.h"
#include "link/shared_slots.h"
#include "window/lasting_memory.h"
#include "window/view.h"

namespace tutti::link {

enum class Progress : uint8_t { kIdle, kAdvanced, kFailed };

// Where the payload of a slot may go instead of into the slot: to a place in the receiver's memory. Only of that very
// slot: one that says something else of itself is posted as it is, for the lane to see. The place may have been written
// by then, as long as the right payload would be: what comes over a stream is read together with its head.
struct Landing {
  uint64_t slot = 0;  // its number
  Fingerprint fingerprint;
  uint32_t bytes = 0;
  // Of more than kInlineBytes; null: the payload stays in its slot, and only how long it is is told.
  std::byte* to = nullptr;
};

// Moves what was posted, where the FIFO is not mapped into both ranks. Mapped memory has no driver.
// One driver serves both directions of an edge.
class Driver {
 public:
  virtual ~Driver() = default;
  // progress(), unless another thread is in it right now (a send and a receive on streams of their own share the edge).
  Progress drive() noexcept {
    return turn([this] { return progress(); });
  }
  // From now on, whichever thread drives, that payload may land. Its place stays this rank's to write until the slot is
  // there, or until withdraw().
  Progress drive(const Landing& landing) noexcept {
    return turn([&] { return land(landing), progress(); });
  }
  // After a post, by who does not wait.
  Progress push() noexcept {
    return turn([this] { return send(); });
  }
  // Once it returns nothing lands any more, on no thread.
  void withdraw() noexcept {
    alone([this] { stopLanding(); });
  }
  // Whether what is posted from now on may lie in this memory, until letGo(). Where it may not, nothing is wrong.
  bool hold(const window::Lasting& memory) noexcept {
    bool held = false;
    alone([&] { held = beginHolding(memory); });
    return held;
  }
  // As often as it was held. Nothing that lies there is unreleased then.
  void letGo(const window::Lasting& memory) noexcept {
    alone([&] { endHolding(memory); });
  }
  // Waits until no other thread is in progress(), which never takes long.
  template <class Act>
  void alone(Act act) noexcept {
    waitForTurn();
    act();
    endTurn();
  }
  // Whether each turn of it is a system call, which takes as long as some thirty looks at memory.
  virtual bool asksTheSystem() const noexcept { return false; }
  // What to sleep on: a descriptor, and what to wait for there (POLLIN, POLLOUT); nothing where `events` is 0.
  struct Interest {
    int fd;
    short events;
  };
  // Any thread: it waits while another one is in progress(), which changes what the driver wants.
  Interest interest() noexcept;
  // How often it has advanced: changes also while a long slot crosses a slow network. Any thread.
  uint64_t advances() const noexcept { return advances_.load(std::memory_order_relaxed); }
  // Sends what the send end has posted and fills the receive end from what has arrived. Never blocks, never throws.
  virtual Progress progress() noexcept = 0;
  // Its first half, where there are two: what has arrived may be wanted elsewhere than in slots.
  virtual Progress send() noexcept { return progress(); }
  // Whether it sends what lies beside the slots as well (PayloadLocation::kAtSender, at an address of this process),
  // and lets payloads land, which are PayloadLocation::kAtReceiver then.
  virtual bool reachesBuffers() const noexcept { return false; }
  // Whether it sends what lies beside the slots from memory that it holds, and from no other.
  virtual bool holdsBuffers() const noexcept { return false; }
  // As progress(): by one thread at a time.
  virtual void land(const Landing&) noexcept {}
  virtual void stopLanding() noexcept {}
  virtual bool beginHolding(const window::Lasting&) noexcept { return false; }
  virtual void endHolding(const window::Lasting&) noexcept {}
  // What was posted and is not released lies in slots from now on: nothing is read elsewhere once this returns.
  virtual void stopSendingBuffers() noexcept {}
  // True while something posted has not yet been handed to the network.
  virtual bool sending() const noexcept = 0;
  // Only what progress() would take or give. By one thread at a time, as progress(), and before each sleep.
  virtual Interest wanted() noexcept = 0;
  // After kFailed: what happened, with the peer's address.
  virtual std::string error() const = 0;

 private:
  template <class Move>
  Progress turn(Move move) noexcept {
    if (busy_.test_and_set(std::memory_order_acquire)) return Progress::kIdle;
    const Progress result = move();
    if (result == Progress::kAdvanced)  // one writer at a time: whoever holds busy_
      advances_.store(advances_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    endTurn();
    return result;
  }
  void waitForTurn() noexcept;
  // Pairs with the acquires in turn() and waitForTurn(): the next thread sees the driver's state.
  void endTurn() noexcept { busy_.clear(std::memory_order_release); }

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
// wait, and two changes of who runs there cost as much as a slot's work: it wakes to half a FIFO of work, a usual
// one's, or when the other one stops.
struct Wakeups {
  uint32_t owed = 0;
  // After a slot. True: at its next stop the caller has to settle().
  bool owe(Doorbell* bell, uint32_t depth) noexcept {
    if (!sleeps(bell)) [[likely]]
      return false;
    const auto load = [](const std::atomic<uint32_t>& count) { return count.load(std::memory_order_relaxed); };
    if (++owed < std::min(depth, slots::kDepth) / 2 && load(bell->patient) >= load(bell->sleeping)) return true;
    owed = 0;
    wake(*bell);
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

// Of a slot that is kAtSender.
inline Lent lentOf(const SlotHeader& line) noexcept {
  Lent lent;
  std::memcpy(&lent, line.inlined, sizeof lent);
  std::atomic_signal_fence(std::memory_order_acq_rel);  // the compiler reads nothing of it again
  return lent;
}
inline RemoteAddress lentAt(const SlotHeader& line) noexcept { return lentOf(line).place; }
// Where the payload of such a slot is, or of one that is kInSlot and has more than kInlineBytes; for its sender.
inline const std::byte* placeSent(const Fifo& fifo, uint64_t slot) noexcept {
  const SlotHeader& line = fifo.line(slot);
  if (line.carried == PayloadLocation::kAtSender) return reinterpret_cast<const std::byte*>(lentAt(line).at);
  return fifo.slot(slot);
}

struct SendEnd {
  Fifo fifo;
  uint64_t posted = 0;           // slots posted so far; the next slot's number
  uint64_t knownReleased = 0;    // a lower bound of *fifo.released
  Doorbell* peerBell = nullptr;  // null: the peer does not sleep on this link's memory
  Driver* driver = nullptr;      // null: mapped memory
  int peer = -1;
  // The number of the slot behind the last that a payload took as a whole, half of one, and a quarter.
  std::array<uint64_t, std::countr_zero(Fifo::kMostParts)> behind{};
  bool goesShared = false;  // what goes to several goes by this rank's shared slots: as sharesSlots() has found
  Wakeups wakeups{};

  // For a payload in its slot.
  bool hasRoom() noexcept { return hasRoom(fifo.depth); }
  // For one that is lent.
  bool hasLine() noexcept { return hasRoom(fifo.lines); }
  // What takes a part of its slot has no more room than what takes more of one while there is such a one under way
  // (Fifo::part).
  bool hasRoomFor(size_t bytes) noexcept {
    if (bytes <= kInlineBytes || bytes <= fifo.shortBytes) return hasRoom(fifo.lines);
    uint32_t parts = 1;
    for (const uint32_t most = fifo.partsFor(bytes); parts < most; parts *= 2)
      if (!isReleased(behind[static_cast<size_t>(std::countr_zero(parts))])) break;
    return hasRoom(parts * fifo.depth);
  }
  // Whether so many slots have been, since the link was made.
  bool isReleased(uint64_t number) noexcept {
    if (knownReleased >= number) return true;
    knownReleased = fifo.released->value.load(std::memory_order_acquire);  // as in hasRoom()
    return knownReleased >= number;
  }
  bool drained() noexcept { return fifo.released->value.load(std::memory_order_acquire) == posted; }
  SlotHeader& header() noexcept { return fifo.line(posted); }
  // Where the payload of the next slot goes; needs hasRoomFor() it.
  std::byte* place(size_t bytes) noexcept {
    if (bytes > kInlineBytes && bytes > fifo.shortBytes)
      if (const uint32_t parts = fifo.partsFor(bytes); parts < Fifo::kMostParts)
        behind[static_cast<size_t>(std::countr_zero(parts))] = posted + 1;
    return fifo.place(posted, bytes);
  }
  void post(const Fingerprint& fingerprint, uint32_t bytes) noexcept {
    postQuietly(fingerprint, bytes);
    ring(peerBell);
  }
  // Who sleeps is not woken for it.
  void postQuietly(const Fingerprint& fingerprint, uint32_t bytes) noexcept {
    post(fingerprint, bytes, PayloadLocation::kInSlot);
  }
  // Whether the peer, or else the driver, can read this rank's memory.
  bool lends() const noexcept {
    return driver != nullptr ? driver->reachesBuffers() || driver->holdsBuffers() : (readsSender() & kByKernel) != 0;
  }
  // Whether the peer has this rank's window.
  bool lendsMapped() const noexcept { return driver == nullptr && (readsSender() & kMapped) != 0; }
  // Whether the peer has this rank's shared slots.
  bool sharesSlots() const noexcept { return driver == nullptr && (readsSender() & kShared) != 0; }
  // The payload stays at `from` until the slot is released; more than kInlineBytes. Needs lends(), and over a driver
  // that holds buffers one that is held. `lent`, `rounds`: see Lent.
  void lendQuietly(const Fingerprint& fingerprint, uint32_t bytes, const std::byte* from, size_t lent = 0,
                   uint64_t rounds = 1) noexcept {
    lend(fingerprint, bytes, {{reinterpret_cast<uint64_t>(from), 0}, std::max<uint64_t>(lent, bytes), rounds});
  }
  // The same at a place in the window. Needs lendsMapped().
  void lendMappedQuietly(const Fingerprint& fingerprint, uint32_t bytes, uint64_t place, size_t lent = 0,
                         uint64_t rounds = 1) noexcept {
    lend(fingerprint, bytes, {{place, kWindow}, std::max<uint64_t>(lent, bytes), rounds});
  }
  // What lies in one of this rank's shared slots, which this post is told to. Needs sharesSlots().
  void postSharedQuietly(const Fingerprint& fingerprint, uint32_t bytes, SharedSlots::Slot& slot) noexcept {
    lend(fingerprint, bytes, {{slot.place(), kSharedSlots}, bytes, 1});
    slot.tell(*fifo.released, posted);
  }
  // What has been lent, and not given back, is not what it was any more: who has read it sees that, as this comes
  // before whatever the caller does to that memory next.
  void takeBack() noexcept {
    for (uint64_t slot = posted - std::min<uint64_t>(posted, fifo.lines); slot != posted; ++slot) {
      SlotHeader& line = fifo.line(slot);
      std::atomic_ref carried(line.carried);
      const bool lent = carried.load(std::memory_order_relaxed) == PayloadLocation::kAtSender;
      if (lent && link::lentAt(line).window != kSharedSlots)  // these are no caller's
        carried.store(PayloadLocation::kTakenBack, std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // The same over a driver: what has not left goes on from its slots, where it is from now on.
  void moveIntoSlots() noexcept;

 private:
  bool hasRoom(uint32_t most) noexcept {
    if (posted - knownReleased < most) return true;
    // Acquire: pairs with RecvEnd::release; the receiver has read the slot that is about to be overwritten.
    knownReleased = fifo.released->value.load(std::memory_order_acquire);
    return posted - knownReleased < most;
  }
  uint32_t readsSender() const noexcept { return fifo.released->readsSender.load(std::memory_order_relaxed); }
  void lend(const Fingerprint& fingerprint, uint32_t bytes, const Lent& lent) noexcept {
    std::memcpy(header().inlined, &lent, sizeof lent);
    post(fingerprint, bytes, PayloadLocation::kAtSender);
  }
  void post(const Fingerprint& fingerprint, uint32_t bytes, PayloadLocation carried) noexcept {
    SlotHeader& line = header();
    line.fingerprint = fingerprint;
    line.bytes = bytes;
    line.carried = carried;
    // Release: pairs with RecvEnd::ready; header and payload are visible to whoever sees the number.
    line.sequence.store(++posted, std::memory_order_release);
    ownNext(bytes);
  }
  // The next slot's lines, for a payload like this one: more of them are as soon there when they are written to.
  void ownNext(size_t bytes) noexcept {
    constexpr size_t kLine = 64, kMost = 4 * kLine;
    own(&header());
    if (bytes <= kInlineBytes || bytes > std::min<size_t>(fifo.shortBytes, kMost)) return;
    const std::byte* const next = fifo.place(posted, bytes);
    for (size_t at = 0; at < bytes; at += kLine) own(next + at);
  }
};

struct RecvEnd {
  Fifo fifo;
  uint64_t received = 0;  // slots taken so far; the next slot's number
  Doorbell* peerBell = nullptr;
  Driver* driver = nullptr;
  int peer = -1;
  Wakeups wakeups{};
  PeerMemory* memory = nullptr;       // null: the kernel reads nothing there
  window::View* window = nullptr;     // null: nothing there is mapped
  const std::byte* shared = nullptr;  // the peer's shared slots; null: they are not mapped
  const std::byte* mapped = nullptr;  // where this slot's payload is, which the lane has found in one of these
  uint64_t roundsLeft = 0;            // of this slot, if it is of several rounds (Lent::rounds)
  uint64_t bytesTaken = 0;            // by those that were

  const SlotHeader& header() const noexcept { return fifo.line(received); }
  // Acquire: pairs with SendEnd::post.
  bool ready() const noexcept { return header().sequence.load(std::memory_order_acquire) == received + 1; }
  // Needs ready().
  Said said() const noexcept {
    const SlotHeader& line = header();
    const Said copy{line.fingerprint, line.bytes};
    std::atomic_signal_fence(std::memory_order_acq_rel);  // the compiler reads nothing of it again
    return copy;
  }
  // Needs ready().
  PayloadLocation carried() const noexcept {
    return std::atomic_ref(const_cast<PayloadLocation&>(header().carried)).load(std::memory_order_relaxed);
  }
  // Of what is kAtSender.
  Lent lent() const noexcept { return lentOf(header()); }
  RemoteAddress lentAt() const noexcept { return lent().place; }
  // Whether what was read at the sender had not been taken back by then.
  bool isStillLent() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return carried() == PayloadLocation::kAtSender;
  }
  // Where so many bytes of payload are; needs ready(). As many as there must be, whatever the header says by now.
  const std::byte* payload(size_t bytes) const noexcept { return fifo.place(received, bytes); }
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
  std::span<std::byte> memory;   // that holds both FIFOs, or all of them but their slots:
  GpuSlots* gpuSlots = nullptr;  // these lie there then
  // Bytes of memory that this rank accounts for (a region shared with the peer counts half on each side).
  size_t memoryBytes = 0;
  std::string transport;  // its name
  std::string remark;     // what a user may want to know of this link, to go after its name; empty: nothing

  // The peer's memory can be read from now on.
  void readFrom(std::unique_ptr<PeerMemory> peers) noexcept {
    peerMemory_ = std::move(peers);
    recv.memory = peerMemory_.get();
    recv.fifo.released->readsSender.fetch_or(kByKernel, std::memory_order_relaxed);
  }
  // And its shared slots, SharedSlots::kMemoryBytes.
  void readShared(const std::byte* peers) noexcept {
    recv.shared = peers;
    recv.fifo.released->readsSender.fetch_or(kShared, std::memory_order_relaxed);
  }
  // And what is in its window.
  void readFrom(std::shared_ptr<window::View> peers) noexcept {
    window_ = std::move(peers);
    recv.window = window_.get();
    recv.fifo.released->readsSender.fetch_or(kMapped, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<PeerMemory> peerMemory_;
  std::shared_ptr<window::View> window_;
};

}  // namespace tutti::link
