// The flight recorder of one communicator: its last calls and how far each has come. It is always on, so its cost per
// call is a few stores to one cache line. Whoever runs a call writes its entry; any thread reads at any time - to
// answer another rank that waits, to explain an error, to write a dump - hence the atomics.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ticks.h"
#include "comm/call.h"
#include "schedule/schedule.h"

namespace tutti::comm {

// Calls of one line are numbered from 0 and pass one after the other (see Turnstile).
enum class CallLine : uint8_t { kCollective, kSend, kReceive };

CallLine lineOf(const Call& call) noexcept;
// Where the other rank's part of a call stands: a send's is a receive.
CallLine counterpartOf(CallLine line) noexcept;

enum class CallState : uint8_t {
  kQueued,      // made; behind an earlier one, or on a stream that has not come to it
  kConnecting,  // waits for its links
  kRunning,
  kDone,
  kFailed
};
const char* nameOf(CallState state) noexcept;

// One call, as copied out of the recorder.
struct CallRecord {
  uint64_t order = 0;  // of the call among all of the communicator, from 0
  CallLine line = CallLine::kCollective;
  int peer = -1;          // of a send or receive
  bool blocking = false;  // its caller waits in it, and makes no other call meanwhile
  link::Fingerprint fingerprint;
  CallState state = CallState::kQueued;
  std::optional<schedule::Algorithm> algorithm;  // once it is chosen
  int waitingFor = -1;                           // the rank that it waited for when last looked at
  uint32_t roundsDone = 0, rounds = 0;           // each round moves one slot of every segment
  uint64_t queuedTicks = 0, endedTicks = 0;
};

class Recorder {
 public:
  static constexpr size_t kEntries = 256;
  using Token = uint64_t;  // a call's order

  // By the thread that makes calls: there is one at a time.
  Token begin(const Call& call, const link::Fingerprint& fingerprint, bool blocking) noexcept;

  // By the thread that runs the call. Nothing happens when the entry already serves a later call.
  void started(Token call, schedule::Algorithm algorithm) noexcept;
  void progressed(Token call, int waitingFor, uint64_t roundsDone, uint64_t rounds) noexcept;
  void moved(Token call, CallState state) noexcept;  // kDone and kFailed end it

  // Any thread. A copy of the entries, oldest first; an entry that is being overwritten is left out.
  std::vector<CallRecord> records() const;
  // The collective with this number, if it has been made and is still kept.
  std::optional<CallRecord> collective(uint32_t number) const;
  // The last call of that line (to that peer) that has been made.
  std::optional<CallRecord> last(CallLine line, int peer = -1) const;
  // Whether the call with this number has been made.
  bool begun(CallLine line, int peer, uint32_t number) const;
  // A call that has not ended, whose caller waits in it, and which was seen to wait for that rank.
  std::optional<CallRecord> stuckOn(int rank) const;
  const Timeline& timeline() const noexcept { return timeline_; }

 private:
  // order << 8 | state in `mark` says whose entry it is. Relaxed stores are enough: a reader checks the mark before and
  // after, and what it reads in between tells a story, it decides nothing.
  struct alignas(64) Entry {
    std::atomic<uint64_t> mark{~uint64_t{0}};
    std::atomic<uint64_t> count{0}, call{0};  // the fingerprint
    std::atomic<uint64_t> where{0};           // line, algorithm + 1, peer + 1, waitingFor + 1
    std::atomic<uint64_t> rounds{0};          // done << 32 | all
    std::atomic<uint64_t> queued{0}, ended{0};
  };
  Entry& entryOf(Token call) noexcept { return entries_[call % kEntries]; }
  bool owns(const Entry& entry, Token call) const noexcept;
  std::optional<CallRecord> read(uint64_t order) const;
  template <class Match>
  std::optional<CallRecord> findLast(Match match) const;

  Timeline timeline_;
  std::atomic<uint64_t> begun_{0};
  std::array<Entry, kEntries> entries_;
};

}  // namespace tutti::comm
