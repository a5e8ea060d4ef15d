// A communicator: one rank's membership in a group of ranks, with everything that hangs on it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "comm/config.h"
#include "comm/device_watch.h"
#include "comm/links.h"
#include "comm/plans.h"
#include "comm/recorder.h"
#include "comm/registered.h"
#include "comm/task.h"
#include "control/plane.h"
#include "device/program.h"
#include "launch/patience.h"
#include "topology/card.h"
#include "wire/messages.h"

namespace tutti::comm {

class DeviceSide;
struct DeviceTroubles;

struct Stats {
  uint64_t memoryBytes = 0, connectedPeers = 0, operations = 0, directSlots = 0;
  std::string lastAlgorithm, lastTransports;
};

// What a rank brings to the others: what it found out of its machine and its environment. Made while the caller is in
// the call: while a thread in the background looked through the environment, the program might change it.
struct Self {
  Bytes card;
  Network network;
  std::optional<control::Refusal> lack;    // what of the machine is not there, such as the GPU: join() tells the others
  static Self find(const Config& config);  // throws Error
  void check() const;                      // throws what it lacks
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  using Cancelled = control::Cancelled;
  using Begun = std::function<void()>;
  // Joins. Blocks until all ranks are there; reads nothing of the environment; throws Error. From the moment when it
  // calls `begun`, what becomes of this rank is told to the others where they meet.
  static std::shared_ptr<Communicator> join(const control::UniqueId& id, int rank, int size, const Config& config,
                                            const Self& self, const Cancelled& cancelled = {}, const Begun& begun = {});
  Communicator(std::unique_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder, const Config& config);
  ~Communicator();

  // A child of the ranks with the same color; null for a negative color. Collective over this communicator; `begun` as
  // in join(). Throws Error.
  std::shared_ptr<Communicator> split(int color, int key, const Config& config, const Begun& begun);

  // The survivors' way on after a failure: a new communicator of all ranks that are still there, in the old order.
  // Collective over them; blocks, at most for config.joinTimeout. Throws Error.
  std::shared_ptr<Communicator> shrink(const Config& config);

  int rank() const noexcept { return plane_->rank(); }
  int size() const noexcept { return plane_->size(); }
  const Config& config() const noexcept { return config_; }
  Turnstile& turnstileFor(const Call& call) noexcept;
  Plans& plans() noexcept { return plans_; }
  const Plans& plans() const noexcept { return plans_; }
  Recorder& recorder() noexcept { return *recorder_; }
  const Recorder& recorder() const noexcept { return *recorder_; }
  std::shared_ptr<const Recorder> sharedRecorder() const noexcept { return recorder_; }
  // A registration of the user's buffer: what it returns stands for it until endBuffer(), which returns false for what
  // stands for none. One thread at a time.
  const void* addBuffer(const void* buffer, size_t bytes);
  bool endBuffer(const void* handle);
  const topology::Card& card(int rank) const { return cards_[static_cast<size_t>(rank)]; }
  std::span<const topology::Card> cards() const noexcept { return cards_; }
  const link::Registry& registry() const noexcept { return registry_; }
  uint64_t id() const noexcept { return plane_->id(); }
  link::Bell& bell() noexcept { return links_.bell(); }
  link::Ear* ear() noexcept { return links_.ear(); }
  bool spins() const noexcept { return spins_; }
  // What it has on its GPU; null for one whose buffers are in host memory.
  DeviceSide* device() const noexcept { return device_.get(); }

  // True once something stopped this communicator: an error here, on another rank, or an abort.
  bool broken() const noexcept { return broken_.load(std::memory_order_acquire) || plane_->failed().load(); }
  // Nothing but the end of its process did, which takes it down if nobody else has. Any thread.
  bool endedWithProcess() const;
  // What stopped it, as the error that a call gets which was at `operation` then.
  Error failure(const std::string& operation) const;
  // Records the first failure, and tells the other ranks. Any thread.
  void fail(const Error& error) noexcept { stop(control::Stop::kError, error); }
  void stop(control::Stop how, const Error& error) noexcept;

  // Where another rank is: see Watch. Any thread.
  void ask(int rank, const Question& question) { plane_->ask(rank, encode(question)); }
  std::optional<control::Answer> lastAnswer(int rank) const { return plane_->lastAnswer(rank); }
  uint64_t answersOf(int rank) const;
  std::vector<int> wayTo(int rank) const { return plane_->wayTo(rank); }

  // True for the first who asks: a failed communicator writes one record by itself. Any thread.
  bool claimDump() const noexcept { return !dumped_.exchange(true); }
  bool hasDump() const noexcept { return dumped_.load(std::memory_order_relaxed); }
  // After a failure: has that record written, if records are wanted and nobody else has. Any thread.
  void leaveRecord(const Error& why);

  // Tells the others that this rank leaves in good order. Once it is idle; afterwards it may only be asked what it
  // knows. The destructor does it too, but others may hold the communicator for a while, such as the writer of records.
  void leave() noexcept;
  bool idle() const noexcept;  // nothing queued or running
  // Waits for the calls that streams still work on. They end by themselves: each has a deadline.
  void waitUntilIdle() const noexcept;
  Stats stats() const;
  std::string rankName(int rank) const;  // "rank 3 (host n2, pid 411)"
  // In words: where this rank was in `mine`, a slot of `bytes` from the peer came that belongs to `theirs`.
  Error disagreement(link::Fingerprint mine, int peer, const link::Fingerprint& theirs, uint64_t bytes) const;

 private:
  bool noteFailure(const Error& error);  // false when there was one before
  void tell(control::Stop how, const Error& error) const noexcept;
  Error explain(const device::Report& report) const;
  DeviceTroubles deviceTroubles();
  std::vector<topology::Card> decodeCards() const;
  void checkProcesses() const;
  plan::Machine describeMachine() const;
  std::vector<int> groups() const;
  std::vector<int> hostNumbers() const;

  Config config_;
  std::unique_ptr<control::Plane> plane_;
  std::shared_ptr<Recorder> recorder_;
  Registered registered_;
  std::vector<topology::Card> cards_;
  link::Registry registry_;
  bool spins_;
  Links links_;
  Plans plans_;
  Turnstile collectives_;
  std::vector<Turnstile> sends_, receives_;
  std::atomic<bool> broken_{false};
  mutable std::atomic<bool> dumped_{false};
  mutable std::mutex failureMutex_;
  std::optional<Error> failure_;
  DeviceWatch deviceWatch_{*this};
  std::unique_ptr<DeviceSide> device_;  // goes first: its kernels and its thread use the rest
};

}  // namespace tutti::comm
