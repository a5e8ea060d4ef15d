// The port to what runs the calls of a communicator: one kind of it for buffers in host memory, one for those on GPUs.
// Nobody outside asks which it is.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/stream.h"
#include "team/call.h"
#include "team/explanation.h"
#include "team/operation.h"
#include "team/registered.h"
#include "team/team.h"

struct CUstream_st;

namespace tutti::comm {

struct Stats {
  uint64_t memoryBytes = 0, connectedPeers = 0, operations = 0, directSlots = 0;
  std::string lastAlgorithm, lastTransports;
};

using Rows = std::vector<std::pair<std::string, std::string>>;  // what, and what there is to say of it

// What a call is queued on: a stream of the kind that its executor takes, or none.
struct CallStream {
  std::shared_ptr<engine::Stream> host;
  CUstream_st* cuda = nullptr;  // null is its default stream
  explicit operator bool() const noexcept { return host || cuda; }
};

// What became of a call that is made again: it was not begun; it has ended well; it waits for others.
enum class Again : uint8_t { kNot, kDone, kGoesOn };

class Executor;

// Of a group.
struct PendingCall {
  std::shared_ptr<const void> keeper;  // of the executor and all that it uses
  Executor* executor = nullptr;
  Call call;
  CallStream stream;
  std::shared_ptr<Operation> operation{};  // is told how it ended, if anybody asked for it
};

// How calls of a group are launched that are of one kind of executor. It has no state, and never ends.
class GroupLauncher {
 public:
  // Whether launch() runs calls to their end, and does not only queue them.
  virtual bool runs() const noexcept = 0;
  // All calls are of executors with this launcher. Starts them, in this order; what it needs for longer it takes out of
  // them. Throws the first Error.
  virtual void launch(std::span<PendingCall> calls) const = 0;

 protected:
  ~GroupLauncher() = default;
};

class Executor {
 public:
  struct Traits {
    bool takesCudaStreams = false;  // or those of tuttiStreamCreate
    bool readsFactorsLate = false;  // of an operator whose scalar is on the device: when a call runs
  };

  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  Team& team() const noexcept { return team_; }
  const GroupLauncher& launcher() const noexcept { return launcher_; }
  const Traits& traits() const noexcept { return traits_; }

  // One call outside of a group, on no stream: on the host it runs here, to its end, without an allocation. Throws
  // Error.
  virtual void run(const Call& call) = 0;
  // The same of one that went well before, which stays where it is. kGoesOn: goOn() is called with it next, on this
  // thread, and throws as run().
  virtual Again again(const Call&) noexcept { return Again::kNot; }
  virtual void goOn(const Call&) {}
  // The same on its stream.
  virtual void queue(PendingCall call) = 0;
  // For the call of a request.
  virtual std::shared_ptr<Operation> newOperation();

  // Buffers that the user registers and gives up. One thread at a time, which is also that of the calls.
  virtual void addBuffer(const void* handle, const Range& buffer);
  virtual void endBuffer(const void* handle);
  // All, of an owner who is gone while calls may still run; what these hold of them goes when they end.
  virtual void endBuffers() noexcept;

  virtual bool idle() const noexcept = 0;  // nothing queued or running
  // Waits for the calls that streams still work on. They end by themselves: each has a deadline.
  void waitUntilIdle() const noexcept;
  // Nothing is launched afterwards; what runs on a GPU is ended.
  virtual void end() noexcept;

  // Brings the recorder's lines of what runs up to date. Any thread.
  virtual void note();
  virtual Stats stats() const = 0;
  // What would run a collective, in words: "ring, 4 channels".
  virtual std::string foresee(const Call& call) const = 0;
  // The same with what was weighed, and by what links.
  virtual Explanation explain(const Call& call) const;
  // Where buffers are, and how links reach them.
  virtual Rows describe() const = 0;

 protected:
  Executor(Team& team, const GroupLauncher& launcher, Traits traits)
      : team_(team), launcher_(launcher), traits_(traits) {}

 private:
  Team& team_;
  const GroupLauncher& launcher_;
  const Traits traits_;
};

// Those that are only queued first, then those that run. Throws the first Error; calls on the host's streams report
// theirs through the stream.
void launchGroup(std::span<PendingCall> calls);

}  // namespace tutti::comm
