// An operation that waits in a stream: one rank's steps of one call, queued as waits for words in memory, copies and
// small reductions, none of which holds a multiprocessor while it waits (docs/decisions/0010).
//
// The links are FIFOs of slots, as everywhere, but say with words of 0 or a value that a slot is full or taken, so that
// every run of a CUDA graph finds and leaves them alike. Of each slot
//
//   full   with the receiver: 0, or the stamp of what lies in the slot. The sender writes the stamp; the receiver waits
//          for the one that it expects, and writes 0 again before it reads.
//   taken  with the sender: 0 or 1. The sender waits for 0 and writes 1 before it fills the slot; the receiver writes 0
//          when it has read it.
//
// The stamp is made of the call's fingerprint and of how much goes with the step in all its rounds: a receiver of
// another call never sees what it waits for, and who looks at its words finds both calls. Every operation begins with
// slot 0 of every link. That is in order because the operations of a communicator are, at both ends: the slot is free
// when the operation before has ended at the other end, for which that needs nothing of this one.
//
// So nothing may be left in a slot: a stamp has no number, and a later operation could take it for its own. A lane
// looks at its end for what it was not to get (Lane::tookAll), a stream can not look. Where each pair of ranks has
// counts of its own, the two tell each other before anything is lost: in the first round a slot goes with every step,
// if need be of no bytes (Layout::speaks), and its stamp tells how much all rounds have.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "engine/lane.h"

namespace tutti::engine {

// Of one slot, with the receiver. What lies behind `full` tells people what `full` is a stamp of.
struct SlotFlag {
  uint64_t full = 0;
  uint64_t first = 0, second = 0;  // a link::Fingerprint
  uint64_t bytes = 0;              // that go with the step, in all rounds
};

// One end of one direction of a link.
struct StreamedEnd {
  std::byte* slots = nullptr;
  SlotFlag* marks = nullptr;
  uint64_t* taken = nullptr;
  uint32_t slotBytes = 0, depth = 0;
  int peer = -1;
};

uint64_t tagOf(const link::Fingerprint& fingerprint, uint64_t bytes) noexcept;
link::Fingerprint fingerprintOf(uint64_t first, uint64_t second) noexcept;

// What a stream waits for at one place, for whoever looks why it does not go on.
struct Awaited {
  uint64_t* word = nullptr;
  uint64_t value = 0;
  int peer = -1;
  const SlotFlag* mark = nullptr;  // of a slot that is to be full; null: one that is to be free
  uint64_t bytes = 0;              // that are expected, see SlotFlag
  link::Fingerprint mine;
};

// Words in pinned memory that a stream writes as it goes.
struct StreamCursor {
  uint64_t position = 0;  // of the place where it is, and waits or works; 0: at none; perhaps with kLookedAt
  uint64_t ended = 0;     // the end of the trail that ended last, those of graphs apart

  static constexpr uint64_t kLookedAt = uint64_t{1} << 62;
  uint64_t place() const noexcept;  // without kLookedAt
  // Whether the stream has come to no place since this was last asked, and waits or works at one. A mark in the word
  // tells, which goes when the stream writes it anew: a graph that is replayed comes to the same places again. One
  // thread asks.
  bool stands() noexcept;
};

// The places of what was queued at once on one stream. Positions run on from trail to trail; those of graphs, which the
// stream comes to again and again, lie above.
class WaitJournal {
 public:
  static constexpr uint64_t kOfGraphs = uint64_t{1} << 63;
  explicit WaitJournal(uint64_t first) : first_(first) {}  // not 0
  bool ofGraph() const noexcept { return first_ >= kOfGraphs; }
  uint64_t end() const;  // beyond the last place
  // One thread adds, a place and then what is waited for there, while others look. Returns the place's position.
  uint64_t addPlace();
  void add(const Awaited& awaited);
  // What is waited for there; nothing for a position of another trail.
  std::vector<Awaited> at(uint64_t position) const;

 private:
  const uint64_t first_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Awaited> awaited_;
  std::vector<size_t> begins_;  // of each place, in `awaited_`
};

// A queue with what leads to the next move, which goes to the driver in one call.
class StreamedQueue {
 public:
  StreamedQueue(device::SideQueue& queue, StreamCursor& cursor, std::shared_ptr<WaitJournal> journal)
      : queue_(queue), cursor_(cursor), journal_(std::move(journal)) {}
  // Begins a place; its waits follow.
  void arrive();
  void await(const Awaited& awaited);
  void write(uint64_t* word, uint64_t value) { pending_.push_back({device::WordOp::Kind::kWrite, word, value}); }
  // All that was said so far is queued before what is done to `queue()` next.
  device::SideQueue& queue();
  void end();
  // How many places the stream has not come to yet; 0 while a graph is captured.
  uint64_t ahead() const;

 private:
  device::SideQueue& queue_;
  StreamCursor& cursor_;
  std::shared_ptr<WaitJournal> journal_;
  std::vector<device::WordOp> pending_;
};

// What a streamed lane works on. The layout's tables are the host's.
struct StreamedWork {
  const schedule::Schedule* schedule = nullptr;
  LaneWork work;
  const void* factorAt = nullptr;  // see device::Fold
  std::byte* scratch = nullptr;    // buffers of `scratchBytes` each
  uint32_t scratchBytes = 0;
  std::vector<StreamedEnd> ins, outs;  // as Schedule::inPeers and outPeers
};

class StreamedLane {
 public:
  explicit StreamedLane(StreamedWork work);
  size_t iterations() const noexcept { return iterations_; }
  // In order, each once.
  void queueIteration(size_t iteration, StreamedQueue& queue);

 private:
  struct Slot {
    const StreamedEnd* end = nullptr;
    uint32_t number = 0;
    SlotFlag& mark() const noexcept { return end->marks[number]; }
    uint64_t* taken() const noexcept { return end->taken + number; }
    std::byte* data() const noexcept { return end->slots + size_t{number} * end->slotBytes; }
  };
  // The slot of a link of the current step.
  Slot source(schedule::Operand operand) const noexcept { return slotOf(work_.ins, passedIn_, operand); }
  Slot destination(schedule::Operand operand) const noexcept { return slotOf(work_.outs, passedOut_, operand); }
  static Slot slotOf(const std::vector<StreamedEnd>& ends, const std::vector<uint64_t>& passed,
                     schedule::Operand operand) noexcept;

  void queueStep(const schedule::Step& step, size_t round, StreamedQueue& queue);
  uint64_t bytesOf(const schedule::Step& step, bool byInput) const noexcept;
  void prepare(const schedule::Step& step, uint64_t bytes, StreamedQueue& queue) const;
  void settle(const schedule::Step& step, uint64_t bytes, StreamedQueue& queue);
  void moveRun(const schedule::Step& step, const kernels::Piece& run, size_t slotOffset, StreamedQueue& queue) const;
  device::Fold foldOf(const schedule::Step& step, const kernels::Piece& run, size_t slotOffset) const;
  std::byte* placeOf(schedule::Operand operand, bool isSource, const kernels::Piece& run, size_t slotOffset) const;

  StreamedWork work_;
  size_t rounds_, iterations_;
  std::vector<uint64_t> passedIn_, passedOut_;  // slots so far, of each link
  size_t skipped_ = 0;                          // bytes of a scratch buffer, by the current step
};

}  // namespace tutti::engine
