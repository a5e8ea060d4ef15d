// A lane runs one rank's steps of one collective over one set of links. It never blocks its thread: a step that can not
// proceed returns to the caller, so that lanes of channels, of a group's calls and of several communicators advance
// side by side on one thread.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/stores.h"
#include "kernels/host/combine.h"
#include "kernels/walk.h"
#include "link/link.h"
#include "schedule/schedule.h"

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
  std::unique_ptr<bool[]> around;  // of each destination whether it is written around the caches
  std::vector<Stores> stores;      // of each step
  bool hasDrivers = false;         // some link needs progress()

  void prepare(uint32_t bytesPerSlot);  // sizes the rest once schedule, ins and outs are set
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
  // Goes on until it can not. `moved` is set when at least one step was done.
  LaneState run(bool& moved) noexcept;
  const LaneFailure& failure() const noexcept { return failure_; }
  // The peer that the current step waits for, -1 when none.
  int waitingFor() const noexcept { return waitingFor_; }
  // Those that move what this lane sends and receives; links in mapped memory have none.
  template <class Visit>
  void visitDrivers(Visit visit) const {
    for (const link::RecvEnd* end : binding_->ins)
      if (end->driver) visit(*end->driver);
    for (const link::SendEnd* end : binding_->outs)
      if (end->driver) visit(*end->driver);
  }
  bool hasDrivers() const noexcept { return binding_->hasDrivers; }
  // Those of which all steps are done, those that lag furthest behind too.
  size_t roundsDone() const noexcept { return iteration_ - std::min<size_t>(iteration_, binding_->schedule->maxLag); }
  // Changes with every step that is done.
  uint64_t position() const noexcept { return uint64_t{iteration_} << 24 ^ step_; }
  size_t rounds() const noexcept { return rounds_; }

 private:
  // What keeps a step from running: its operand, from 1 on (0: nothing does), and the link to that.
  struct Lack {
    int place = 0, peer = -1;
    link::Driver* driver = nullptr;
  };
  Lack lackOf(const schedule::Step& step) noexcept;
  bool ready(const schedule::Step& step) noexcept;
  bool matches(const schedule::Step& step, size_t bytes) noexcept;
  bool tookAll() noexcept;
  void differs(int peer, const link::Said& said, size_t expected) noexcept;
  void execute(const schedule::Step& step, size_t round, size_t bytes) noexcept;
  bool isMapped(schedule::Operand to) const noexcept;
  size_t mappedSlots(const schedule::Step& step) const noexcept;  // that it fills
  void combineRuns(const schedule::Step& step, size_t round, size_t bytes, bool around) noexcept;
  void combineRun(const schedule::Step& step, const kernels::Piece& run, size_t slotOffset, size_t bytes,
                  bool around) noexcept;
  bool finishStep(const schedule::Step& step, size_t bytes) noexcept;
  LaneState goOn(bool& moved) noexcept;
  void settleWakeups() noexcept;
  size_t bytesOf(const schedule::Step& step, size_t round) const noexcept;
  bool byInput(const schedule::Step& step) const noexcept {
    return kernels::goesByInput(work_.layout, binding_->schedule->operands.data(), step);
  }
  bool drive(link::Driver* driver, int peer) noexcept;
  bool driveSenders(const link::Driver* driven) noexcept;

  Binding* binding_ = nullptr;
  LaneWork work_;
  size_t iteration_ = 0, iterations_ = 0, rounds_ = 0;
  uint32_t step_ = 0;
  int waitingFor_ = -1;
  bool owesWakeups_ = false;
  LaneFailure failure_;
};

}  // namespace tutti::engine
