// The flight recorder of one communicator: its last calls and how far each has come. It is always on, so its cost per
// call is a few stores to one cache line. Whoever runs a call writes its entry; any thread reads at any time - to
// answer another rank that waits, to explain an error, to write a dump - hence the atomics.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/ticks.h"
#include "schedule/schedule.h"
#include "team/call.h"

namespace tutti::comm {

// Calls of one line are numbered from 0 and pass one after the other (see TicketQueue).
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

// Who makes calls: a thread of this process.
using CallerId = uintptr_t;
CallerId thisCaller() noexcept;

// One call, as copied out of the recorder.
struct CallRecord {
  uint64_t order = 0;  // of the call among all of the communicator, from 0
  CallLine line = CallLine::kCollective;
  int peer = -1;                  // of a send or receive
  bool blocking = false;          // its caller waits in it, and makes no other call meanwhile
  bool onlyReadies = false;       // it made a persistent call ready
  link::Fingerprint fingerprint;  // without its tag
  uint64_t tag = 0;
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

  // Before the first call: how many ranks there are to send to. Throws std::bad_alloc.
  void expect(int self, int ranks);

  // By the thread that makes calls: there is one at a time.
  // Moments are told to the recorder, in ticks: others want them as well, and the clock takes time too.
  Token begin(const Call& call, const link::Fingerprint& fingerprint, bool blocking, uint64_t now,
              CallState state = CallState::kQueued) noexcept;

  // By the thread that runs the call. Nothing happens when the entry already serves a later call.
  // `planned`: the call's fingerprint with its plan.
  void started(Token call, const link::Fingerprint& planned) noexcept;
  void progressed(Token call, int waitingFor, uint64_t roundsDone, uint64_t rounds) noexcept;
  void moved(Token call, CallState state) noexcept;
  void ended(Token call, CallState how, uint64_t now) noexcept;  // kDone or kFailed
  // The call went well, and took so long. Its entry may be another's by now.
  void completed(const Call& call, uint64_t ticks) noexcept;
  // It has waited for that rank so long.
  void waited(int peer, uint64_t ticks) noexcept;

  // Any thread. A copy of the entries, oldest first; an entry that is being overwritten is left out.
  std::vector<CallRecord> records() const;
  // The call with this number (to that peer; of a collective -1), if it has been made and is still kept.
  std::optional<CallRecord> find(CallLine line, int peer, uint32_t number) const;
  std::optional<CallRecord> collective(uint32_t number) const { return find(CallLine::kCollective, -1, number); }
  // The last call of that line (to that peer) that has been made.
  std::optional<CallRecord> last(CallLine line, int peer = -1) const;
  // How many elements the call with this number sends to that rank, and expects of it; of calls whose counts are
  // private, if it is still kept.
  using PairCounts = Call::PairCounts;
  std::optional<PairCounts> countsWith(int peer, uint32_t number) const;
  // The tag of the call with this number, if it is still kept.
  std::optional<uint64_t> tagOf(CallLine line, int peer, uint32_t number) const;
  // Whether the call with this number has been made, however long ago.
  bool begun(CallLine line, int peer, uint32_t number) const noexcept;
  // A call that has not ended, whose caller waits in it, and which was seen to wait for that rank.
  std::optional<CallRecord> stuckOn(int rank) const;
  // The same, whichever rank it waits for.
  std::optional<CallRecord> stuck() const;
  // Of the calls that went well: the bytes of their messages, and how long each took from being made to its end.
  struct Totals {
    uint64_t bytes = 0, nanoseconds = 0;
  };
  Totals totals() noexcept;
  // How long calls have waited for that rank, as far as that was noted.
  uint64_t waitedNs(int peer) const noexcept;
  // Whether any of the calls that are kept has not ended.
  bool busy() const noexcept;
  // Who made the last call, or, before the first, who made the communicator.
  CallerId caller() const noexcept { return caller_.load(std::memory_order_relaxed); }
  const Timeline& timeline() const noexcept { return timeline_; }

  // While a communicator is made of this one, which others wait for.
  class Making {
   public:
    explicit Making(Recorder& recorder) : recorder_(recorder) { recorder_.makings_.fetch_add(1); }
    ~Making() { recorder_.makings_.fetch_sub(1); }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;

   private:
    Recorder& recorder_;
  };
  // Splits have no number of their own in the order of calls, and are counted apart.
  class Splitting {
   public:
    explicit Splitting(Recorder& recorder) : recorder_(recorder), making_(recorder) {
      recorder_.splitsBegun_.fetch_add(1);
    }
    ~Splitting() { recorder_.splitsEnded_.fetch_add(1); }
    Splitting(const Splitting&) = delete;
    Splitting& operator=(const Splitting&) = delete;

   private:
    Recorder& recorder_;
    const Making making_;
  };
  uint32_t splitsBegun() const noexcept { return splitsBegun_.load(); }
  // The number, from 1 on, of the split that the caller is in; 0: in none.
  uint32_t split() const noexcept {
    const uint32_t ended = splitsEnded_.load(), begun = splitsBegun_.load();
    return begun == ended ? 0 : begun;
  }

 private:
  // order << 8 | state in `mark` says whose entry it is. Relaxed stores are enough: a reader checks the mark before and
  // after, and what it reads in between tells a story, it decides nothing.
  struct alignas(64) Entry {
    std::atomic<uint64_t> mark{~uint64_t{0}};
    std::atomic<uint64_t> first{0}, second{0};  // the fingerprint, with the plan once there is one
    std::atomic<uint64_t> where{0};             // line, peer + 1, waitingFor + 1
    std::atomic<uint64_t> rounds{0};            // done << 32 | all
    std::atomic<uint64_t> queued{0}, ended{0};
    std::atomic<uint64_t> tag{0};
  };
  // Of the collectives, or of all messages.
  struct Sums {
    std::atomic<uint64_t> bytes{0}, ticks{0};
  };
  Entry& entryOf(Token call) noexcept { return entries_[call % kEntries]; }
  bool owns(const Entry& entry, Token call) const noexcept;
  std::optional<CallRecord> read(uint64_t order) const;
  template <class Match>
  std::optional<CallRecord> findLast(Match match) const;
  void keepCounts(const Call& call, uint32_t number) noexcept;

  // Of one queue of calls: the number of its latest + 1, 0 before the first. The entries forget; this does not.
  using Latest = std::atomic<uint64_t>;
  Latest* latestOf(CallLine line, int peer) const noexcept;

  // The last of the calls whose counts are private.
  struct PairedCall {
    uint32_t number = 0;
    Call call;
  };
  static constexpr size_t kPaired = 64;
  mutable std::mutex pairedMutex_;  // guards the next two
  std::array<PairedCall, kPaired> paired_;
  size_t pairedNext_ = 0;

  Timeline timeline_;
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint32_t> splitsBegun_{0}, splitsEnded_{0}, makings_{0};
  std::atomic<CallerId> caller_{0};
  mutable Latest collectives_{0};
  std::unique_ptr<Latest[]> messages_;                 // by peer: sends, then receives
  std::unique_ptr<std::atomic<uint64_t>[]> waitedNs_;  // by peer
  Sums ofCollectives_, ofMessages_;
  // Of the time that they took, what was told: how long a tick is, is known better and better, and no sum may shrink.
  std::mutex toldMutex_;  // guards the next two
  uint64_t toldTicks_ = 0, toldNs_ = 0;
  std::atomic<int> ranks_{0};  // 0 before messages_ stands
  std::atomic<int> self_{0};
  std::array<Entry, kEntries> entries_;
};

}  // namespace tutti::comm
