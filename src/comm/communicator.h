// A communicator: one rank's membership in a group of ranks, from its join to its end.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/meeting.h"
#include "comm/self.h"
#include "control/plane.h"
#include "launch/bounded_wait.h"
#include "team/config.h"
#include "team/executor.h"
#include "team/registered.h"
#include "team/team.h"

namespace tutti::comm {

inline constexpr int kSplitByHost = -2;

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  using Cancelled = control::Cancelled;
  using Begun = std::function<void()>;
  // Joins. Blocks until all ranks are there; reads nothing of the environment; throws Error. From the moment when it
  // calls `begun`, what becomes of this rank is told to the others where they meet.
  static std::shared_ptr<Communicator> join(const control::UniqueId& id, int rank, int size, const Config& config,
                                            const Self& self, const Cancelled& cancelled = {}, const Begun& begun = {});
  Communicator(std::shared_ptr<control::Plane> plane, std::shared_ptr<Recorder> recorder, const Config& config);
  ~Communicator();

  // A child of the ranks with the same color, or for kSplitByHost of those of a host that say so too; null for any
  // other negative color, which needs no `self`. Collective over this communicator; until `begun`, which is as in
  // join(), only its end ends the wait for the others. Reads nothing of the environment; throws Error.
  std::shared_ptr<Communicator> split(int color, int key, const Config& config, const Self& self,
                                      const Cancelled& cancelled, const Begun& begun);
  // A child of all ranks, in their order: split() of everyone.
  std::shared_ptr<Communicator> duplicate(const Config& config, const Self& self, const Cancelled& cancelled,
                                          const Begun& begun);

  // Opens a root for grow(). Those who join there hear it when this rank leaves without.
  control::UniqueId openRootToGrow();
  // A communicator of these ranks, with their numbers, and of others that join where growth.id says (join()). This one
  // stays as it was, whatever becomes of that. Collective over these ranks, also where one lacks something
  // (growth.lack): all hear of it then, those who join too. Otherwise as split(); `begun` once these have met.
  std::shared_ptr<Communicator> grow(const Growth& growth, const Config& config, const Self& self,
                                     const Cancelled& cancelled, const Begun& begun);

  // The survivors' way on after a failure: a new communicator of all ranks that are still there, in the old order.
  // Collective over them; blocks, at most for config.joinTimeout. `leftOut`: those who stay behind, whether they live
  // or not. Once it is under way an abort ends it; `cancelled` tells of one before. Reads nothing of the environment;
  // throws Error.
  std::shared_ptr<Communicator> shrink(const Config& config, const Self& self, std::span<const int> leftOut,
                                       const Cancelled& cancelled);

  // Who its ranks are, and what stopped them; what runs its calls.
  Team& team() noexcept { return team_; }
  const Team& team() const noexcept { return team_; }
  Executor& executor() const noexcept { return *executor_; }

  // A registration of the user's buffer: what it returns stands for it until endBuffer(), which returns false for what
  // stands for none. One thread at a time.
  const void* addBuffer(const void* buffer, size_t bytes);
  bool endBuffer(const void* handle);
  // Of all, when the handle goes by which the user could end them; streams may keep the communicator for a while.
  void endBuffers() noexcept { executor_->endBuffers(); }

  // After a failure: has the one record of it written, if records are wanted and nobody else has. Any thread.
  void leaveRecord(const Error& why);

  // Tells the others that this rank leaves in good order. Once it is idle; afterwards it may only be asked what it
  // knows. The destructor does it too, but others may hold the communicator for a while, such as the writer of records.
  void leave() noexcept;

 private:
  std::shared_ptr<Communicator> split(Meeting call, int color, int key, const Config& config, const Self& self,
                                      const Cancelled& cancelled, const Begun& begun);
  std::shared_ptr<Communicator> growInOrder(const Growth& growth, const Config& config, const Self& self,
                                            const Cancelled& cancelled, const Begun& begun);
  std::shared_ptr<Communicator> joinGrown(const control::JoinRequest& request, const Config& config, const Self& self,
                                          std::shared_ptr<Recorder> recorder, const Cancelled& cancelled);

  Team team_;
  Registered registered_;
  std::vector<uint64_t> rootsToGrow_;   // by their jobs
  std::unique_ptr<Executor> executor_;  // goes first: its kernels and its thread use the rest
};

}  // namespace tutti::comm
