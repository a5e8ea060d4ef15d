// What the ranks of a communicator are to each other, and what stopped them. Whoever runs calls, or watches over them,
// needs no more of a communicator than this.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/plane.h"
#include "link/registry.h"
#include "team/config.h"
#include "team/recorder.h"
#include "topology/peer_info.h"

namespace tutti::comm {

class Team {
 public:
  // What the first failure that is met here sets off beside. Any thread; what it throws is lost.
  using OnFailure = std::function<void(const Error& why)>;
  Team(std::shared_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder, const Config& config,
       OnFailure onFailure = {});

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  uint64_t id() const noexcept { return plane_->id(); }
  const Config& config() const noexcept { return config_; }
  const topology::PeerInfo& info(int rank) const { return infos_[static_cast<size_t>(rank)]; }
  const std::vector<topology::PeerInfo>& infos() const noexcept { return infos_; }
  std::string rankName(int rank) const;  // "rank 3 (host n2, pid 411)"
  const link::Registry& registry() const noexcept { return registry_; }
  double ranksPerCore() const noexcept { return ranksPerCore_; }  // as many as share this rank's cores
  Recorder& recorder() noexcept { return *recorder_; }
  const Recorder& recorder() const noexcept { return *recorder_; }
  std::shared_ptr<const Recorder> sharedRecorder() const noexcept { return recorder_; }
  control::Plane& plane() noexcept { return *plane_; }

  // --- what stopped it ---
  // True once something did: an error here, on another rank, or an abort.
  bool broken() const noexcept { return broken_.load(std::memory_order_acquire) || stopped_.load(); }
  // Nothing but the end of its process did, which takes it down if nobody else has. Any thread.
  bool endedWithProcess() const;
  // As the error that a call gets which was at `operation` then; empty: at none.
  Error failure(const std::string& operation = {}) const;
  // Records the first failure, and tells the other ranks. Any thread.
  void fail(const Error& error) noexcept { stop(control::Stop::kError, error); }
  void stop(control::Stop how, const Error& error) noexcept;
  // Only tells them.
  void tell(control::Stop how, const Error& error) const noexcept;

  // True for the first who asks: a failed communicator leaves one record by itself. Any thread.
  bool claimDump() const noexcept { return !dumped_.exchange(true); }
  void giveUpDump() const noexcept { dumped_.store(false, std::memory_order_relaxed); }  // by who has claimed it
  bool hasDump() const noexcept { return dumped_.load(std::memory_order_relaxed); }

 private:
  bool noteFailure(const Error& error);  // false when there was one before

  Config config_;
  std::shared_ptr<control::Plane> plane_;
  std::shared_ptr<Recorder> recorder_;
  int rank_, size_;
  std::vector<topology::PeerInfo> infos_;
  link::Registry registry_;
  double ranksPerCore_;
  OnFailure onFailure_;

  // A failure has two sides: what this rank met first, in the words of the call that met it, and what all ranks have
  // been told, which the control plane keeps. They are put together here alone.
  const std::atomic<bool>& stopped_;  // the plane's
  std::atomic<bool> broken_{false};
  mutable std::atomic<bool> dumped_{false};
  mutable std::mutex mutex_;  // guards what follows; may be held while the plane is asked for its side
  std::optional<Error> met_;
};

}  // namespace tutti::comm
