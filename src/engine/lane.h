// A lane runs one rank's steps of one collective over one set of links. It never blocks its thread: a step that can not
// proceed returns to the caller, so that lanes of channels, of a group's calls and of several communicators advance
// side by side on one thread.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/early.h"
#include "engine/lending.h"
#include "engine/short_steps.h"
#include "engine/stores.h"
#include "engine/waiter.h"
#include "kernels/host/combine.h"
#include "kernels/walk.h"
#include "link/link.h"
#include "link/transport_settings.h"
#include "schedule/schedule.h"
#include "schedule/stays.h"

namespace tutti::engine {

// A schedule with its links found: made once per plan and channel, used by one lane at a time.
struct Binding {
  const schedule::Schedule* schedule = nullptr;
  std::vector<link::RecvEnd*> ins;   // as Schedule::inPeers
  std::vector<link::SendEnd*> outs;  // as Schedule::outPeers
  std::vector<std::byte> scratch;    // Schedule::scratches buffers of a slot each
  uint32_t slotBytes = 0;
  std::vector<const std::byte*> sources;  // room for the widest step
  std::vector<std::byte*> destinations;
  std::unique_ptr<bool[]> around;             // of each destination whether it is written around the caches
  std::vector<Stores> stores, outputStores;   // of each step: of its slots, and of what it leaves in the output
  std::unique_ptr<bool[]> last;               // of each step whether it copies what nothing reads there
  bool hasDrivers = false;                    // some link needs progress()
  bool sendsFromBuffers = false;              // some driver, where that may be
  bool holdsBuffers = false;                  // one of them only from memory that it holds
  bool fillsAhead = false;                    // two ranks, over mapped memory, fill several slots before they read
  bool writesBehind = false;                  // in place too, as sums wait until what they go over has left
  std::vector<schedule::Stays> lending;       // what each step may lend instead of filling slots
  std::unique_ptr<bool[]> overLent;           // of each step whether its segment of the input is lent
  std::vector<std::byte>* fetched = nullptr;  // where a step puts what the kernel reads for it, that it adds up
  std::vector<Early> early;                   // whether each may read before its turn
  std::vector<size_t> hasRead;                // bytes from its round on that it has so, in this call
  std::vector<Ahead> ahead;                   // how far each may post before its turn
  std::vector<size_t> hasPosted;              // rounds that it has so, in this call
  link::SingleCopy singleCopy = link::SingleCopy::kNever;
  size_t leastLent = SIZE_MAX;               // bytes over the longest link from which on a call may lend
  size_t leastMapped = SIZE_MAX;             // and lend what its peers have mapped
  size_t leastEither = SIZE_MAX;             // of these, and what drivers hold
  bool allMap = false;                       // all peers over mapped memory have this rank's window
  link::SharedSlots* sharedSlots = nullptr;  // this rank's; null: its peers have none
  std::unique_ptr<bool[]> shares;            // of each step whether several of its links go by these
  std::atomic<uint64_t>* directSlots =
      nullptr;  // counts pieces that peers have read in the window, or devices in place
  LendingTrial trial;
  LendingTrial mappedTrial;  // of what is mapped, where outputs are lent that are inputs as well
  bool triesMapped = false;
  link::KnownReadable readableInput, readableOutput;
  Crowd* crowd = nullptr;   // felt: calls that hand over once do so; null: nobody feels any
  ShortSteps again;         // of a call that is made again
  bool triedShort = false;  // whether they are of this one

  // Whether what is lent of so many rounds is handed over in one post of each step.
  bool handsOverOnce(size_t rounds) const noexcept;
  // The rest, once schedule, ins, outs, singleCopy and what others have are set. Returns how many bytes `fetched` grew.
  size_t prepare(uint32_t bytesPerSlot);

 private:
  size_t makeRoom();
  void findLast();
  void findShared();
  void findDrivers();
  void findLending();
  void findOverLent();
};

// What a lane works on: one call's memory, arithmetic and identity.
struct LaneWork {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  kernels::Layout layout;
  kernels::Arithmetic arithmetic;  // divisor: applied by the steps that finalise
  size_t elementBytes = 1;
  bool scalesInput = false;  // pre-mul-sum: every read of the input is multiplied by the factor
  link::Fingerprint fingerprint;
};

enum class LaneState : uint8_t { kBlocked, kDone, kFailed };

struct LaneFailure {
  enum class Kind : uint8_t { kNone, kMismatch, kBytes, kLink } kind = Kind::kNone;
  int peer = -1;
  link::Fingerprint theirs;        // kMismatch
  size_t bytes = 0, expected = 0;  // kBytes, and of the slot of a kMismatch
  std::string text;                // kLink
};

class Lane {
 public:
  void start(Binding& binding, const LaneWork& work) noexcept;
  // The call for which it started last, but for these.
  void startAgain(const std::byte* input, std::byte* output, const link::Fingerprint& fingerprint) noexcept;
  // Goes on until it can not. `moved` is set when at least one step was done.
  LaneState run(bool& moved) noexcept;
  const LaneFailure& failure() const noexcept { return failure_; }
  // The peer that the current step waits for, -1 when none.
  int waitingFor() const noexcept { return waitingFor_; }
  // The call has failed, and its buffers are the caller's again: peers that still read them get to know.
  void takeBack() noexcept;
  // Those that move what this lane sends and receives; links in mapped memory have none.
  template <class Visit>
  void visitDrivers(Visit visit) const {
    for (const link::RecvEnd* end : binding_->ins)
      if (end->driver) visit(*end->driver);
    for (const link::SendEnd* end : binding_->outs)
      if (end->driver) visit(*end->driver);
  }
  bool hasDrivers() const noexcept { return binding_->hasDrivers; }
  // What it started for: a few posts of a few bytes.
  bool isOnShortWay() const noexcept { return short_; }
  // Those of which all steps are done, those that lag furthest behind too.
  size_t roundsDone() const noexcept { return iteration_ - std::min<size_t>(iteration_, binding_->schedule->maxLag); }
  // Whether the last run() looked by a system call.
  bool askedTheSystem() const noexcept { return asked_; }
  // Changes with every step that is done.
  uint64_t position() const noexcept { return uint64_t{iteration_} << 24 ^ step_; }
  size_t rounds() const noexcept { return rounds_; }

 private:
  // What keeps a step from running: its operand, from 1 on (0: nothing does), and the link to that.
  struct Lack {
    int place = 0, peer = -1;
    link::Driver* driver = nullptr;
    const link::RecvEnd* source = nullptr;  // that is not posted
  };
  Lack lackOf(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool needsNoSlot(const schedule::Step& step, size_t round, size_t bytes, const link::SendEnd& end) noexcept;
  bool ready(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool matches(const schedule::Step& step, size_t bytes) noexcept;
  bool tookAll() noexcept;
  void differs(int peer, const link::Said& said, size_t expected) noexcept;
  void execute(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool isMapped(schedule::Operand to) const noexcept;
  size_t mappedSlots(const schedule::Step& step) const noexcept;  // that it fills
  // What is written around the caches.
  struct Around {
    bool slots = false, output = false;
  };
  bool isThere(const schedule::Step& step) const noexcept;
  bool leavesInOutput(const schedule::Step& step) const noexcept;
  bool putsWherePeersRead(const schedule::Step& step) const noexcept;
  void combineRuns(const schedule::Step& step, size_t round, size_t bytes, Around around) noexcept;
  void combineRun(const schedule::Step& step, const kernels::Piece& run, size_t slotOffset, size_t bytes,
                  Around around) noexcept;
  void finishStep(const schedule::Step& step, size_t bytes) noexcept;
  LaneState goOn(bool& moved) noexcept;
  bool runStep(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool postAhead(const schedule::Step& step, size_t round) noexcept;
  void cover(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool copiesWhatItLends(const schedule::Step& step) const noexcept;
  bool fillsNoSlot(const schedule::Step& step) const noexcept;
  void copyCovered(const schedule::Step& step, size_t round, size_t end) noexcept;
  bool push(const schedule::Step& step) noexcept;
  bool decidesToLend() noexcept;
  void decideOnPlaces() noexcept;
  void findPlaces() noexcept;
  bool findPlace(schedule::Stays where, const schedule::Step& step, size_t round) noexcept;
  void post(link::SendEnd& end, uint32_t bytes) noexcept;
  void endLending() noexcept;
  bool lendsAllMapped() const noexcept;
  bool liesApart() const noexcept;
  bool maySharePlaces() const noexcept { return binding_->schedule->directInPlace || liesApart(); }
  bool isReadable() const noexcept;
  const std::byte* placeOf(schedule::Stays where, const schedule::Step& step, size_t round) const noexcept;
  bool isLentOver(const link::SendEnd& end) const noexcept {
    return isLentMapped(end) || placeLentOver(end) != nullptr;
  }
  bool goesShared(const link::SendEnd& end) const noexcept {
    return shared_ != nullptr && end.goesShared && !isLentOver(end);
  }
  bool isLentMapped(const link::SendEnd& end) const noexcept { return lendsPlace_ && end.lendsMapped(); }
  const std::byte* placeLentOver(const link::SendEnd& end) const noexcept {
    const std::byte* const from = end.driver == nullptr ? lent_ : end.driver->holdsBuffers() ? held_ : sent_;
    return from != nullptr && end.lends() ? from : nullptr;
  }
  void choosePlaces(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  void takeShared(const schedule::Step& step, size_t bytes) noexcept;
  void giveBackShared() noexcept;
  bool lands(const schedule::Step& step) const noexcept;
  bool fetch(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  static bool goesOn(link::RecvEnd& end, link::Lent& lent, size_t bytes) noexcept;
  bool fetchToOutput(const schedule::Step& step, size_t round, size_t bytes, link::RecvEnd& end,
                     const link::Lent& lent) noexcept;
  bool fetchApart(link::RecvEnd& end, const link::Lent& lent, size_t bytes, size_t number) noexcept;
  bool fetchOne(link::RecvEnd& end, std::byte* to, uint64_t at, size_t bytes) noexcept;
  size_t fetchable(const schedule::Step& step, size_t round, size_t bytes, uint64_t lent) const noexcept;
  bool findShared(link::RecvEnd& end, uint64_t at, size_t bytes) noexcept;
  bool findMapped(link::RecvEnd& end, const link::RemoteAddress& lent, size_t bytes) noexcept;
  static const std::byte* payloadOf(const link::RecvEnd& end, size_t bytes) noexcept {
    return end.mapped != nullptr ? end.mapped : end.payload(bytes);
  }
  bool wasStillLent(const schedule::Step& step) noexcept;
  bool refuses(int peer, std::string_view what) noexcept;
  bool isReturned() noexcept;
  void settleWakeups() noexcept;
  size_t bytesOf(const schedule::Step& step, size_t round) const noexcept;
  bool byInput(const schedule::Step& step) const noexcept {
    return kernels::goesByInput(work_.layout, binding_->schedule->operands.data(), step);
  }
  // What came of a turn of a driver: false where it has failed.
  bool went(link::Progress how, const link::Driver& driver, int peer) noexcept;
  bool driveFor(const Lack& lack, const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool pushAll(const link::Driver* driven) noexcept;
  bool driveAll() noexcept;
  // Over drivers that reach buffers; in landing.cc.
  bool mayLand(const schedule::Step& step, size_t bytes) const noexcept;
  bool hasLanded(const link::RecvEnd& end) const noexcept {
    return landingAt_ == &end && landing_.slot == end.received && end.carried() == link::PayloadLocation::kAtReceiver;
  }
  const std::byte* placeSent(const schedule::Step& step, size_t round, size_t bytes) const noexcept;
  void stopLanding() noexcept;
  bool goesOverUnsent(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  // Over drivers that hold them; in holding.cc.
  void holdBuffers() noexcept;
  bool hold(schedule::Stays where, std::optional<window::Lasting>& held) noexcept;
  bool isHeld(schedule::Stays where) const noexcept;
  void letGo() noexcept;
  template <class Visit>
  void visitHolders(Visit visit) const;

  bool isShort() noexcept;
  LaneState runShort(bool& moved) noexcept;
  LaneState leaveShortWay(const ShortStep& step, bool& moved) noexcept;
  bool isExpected(const ShortStep& step) noexcept;
  void addUp(const ShortStep& step) noexcept;

  static constexpr std::string_view kNotHere = "it says that data is where this rank cannot read it";
  Binding* binding_ = nullptr;
  bool short_ = false;  // this call
  LaneWork work_;
  size_t iteration_ = 0, iterations_ = 0, rounds_ = 0;
  uint32_t step_ = 0;
  int waitingFor_ = -1;
  bool owesWakeups_ = false;
  bool asked_ = false;
  bool lends_ = false;  // this call, to peers that read
  struct Places {
    bool input = false, output = false;  // in this process's window
    uint64_t inputAt = 0, outputAt = 0;
  } places_;                                   // of what this call lends to peers that have it mapped
  bool lendsPlace_ = false;                    // the current step does, that
  link::SharedSlots::Slot* shared_ = nullptr;  // where it puts what goes to several
  uint64_t lentPlace_ = 0;
  uint64_t slotsReadInPlace_ = 0;                          // by this call
  bool readsMapped_ = false;                               // the current step, in some peer's
  uint64_t covered_ = 1, coveredBytes_ = 0;                // rounds that it lends at once
  bool sendsFromBuffers_ = false;                          // and to drivers
  bool fillsAhead_ = false;                                // this call fills slots, several before it reads
  bool writesBehind_ = false;                              // in place, each round once it has left
  uint64_t firstPosted_ = 0;                               // the number of the first round's slot then
  size_t lendableBytes_ = 0;                               // over its longest link
  bool outputIsLong_ = false;                              // of this rank
  uint64_t startedTicks_ = 0, mappedTicks_ = 0;            // when it started, where it is timed: see the trials
  bool fetched_ = false;                                   // by the current step, to the output
  size_t skipped_ = 0;                                     // bytes of a scratch buffer, by the current step
  bool owesReturns_ = false;                               // something has been lent to peers
  bool owesMoves_ = false;                                 // or is sent by drivers from the caller's buffer
  const std::byte* lent_ = nullptr;                        // by the current step, to peers that read
  size_t lentBytes_ = 0;                                   // and, from there on, by those after it
  const std::byte* sent_ = nullptr;                        // and to drivers
  const std::byte* held_ = nullptr;                        // and to those that hold what they send
  std::optional<window::Lasting> heldInput_, heldOutput_;  // by all of them, while this call runs
  link::Landing landing_;                                  // of the current step
  const link::RecvEnd* landingAt_ = nullptr;
  LaneFailure failure_;
};

}  // namespace tutti::engine
