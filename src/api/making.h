// Making communicators: here and now, in the background (tuttiConfig_t::nonBlocking), or at the end of a group. In the
// last two the handle exists at once, its communicator comes later.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/handle.h"
#include "process/background_threads.h"

namespace tutti::api {

using comm::Communicator;

// Ranks of one communicator whose threads the library starts: the first that fails stops the others, who would wait for
// it until their deadline. Any thread.
class Siblings {
 public:
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }
  // The first failure of all, which what follows only come of.
  Error fail(const Error& error) noexcept;

 private:
  std::mutex mutex_;  // guards the next
  std::optional<Error> first_;
  std::atomic<bool> failed_{false};
};

// One communicator that a call makes, or its rank's part in that.
struct Making {
  // Makes it; asks `cancelled` now and then, calls `begun` as Communicator::join() does, and throws Error. Reads
  // nothing of the environment (but for the system's resolver): while a thread of the library's looks through it, the
  // program may change it. Null where this rank has only to take part.
  using Join = std::function<std::shared_ptr<Communicator>(const Communicator::Cancelled& cancelled,
                                                           const Communicator::Begun& begun)>;
  const char* call = "";
  int rank = 0, size = 0;
  bool nonBlocking = false;
  Join join;
  // What it is made of: nobody else uses it meanwhile.
  std::optional<Occupation> parent = {};
  // The other ranks would wait there for this one, should it fail alone.
  bool isAwaited = false;
  bool makesHandle = true;
  std::shared_ptr<Siblings> siblings = {};
};

// What is told of makings that a thread waits for.
struct MakingFailure {
  const char* call;
  std::string who;  // "rank 3"
  Error error;
};

// Counts makings that are waited for, and keeps the first failure.
class Awaited {
 public:
  void add() noexcept;
  void done(std::optional<MakingFailure> failure) noexcept;
  // Blocks until all are done. Nothing: they went well.
  std::optional<MakingFailure> wait() noexcept;

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  size_t open_ = 0;
  std::optional<MakingFailure> first_;
};

// A making with a handle that is pending, and with a thread of its own once it has begun, which ends with the join, or
// soon after tuttiCommAbort or tuttiCommRevoke, and at the latest when the process does. Where `join` is looking up a
// host's name, each waits until the system's resolver is done.
class Maker final : public Service {
 public:
  // `more`: kDeferred or 0.
  Maker(Making making, uint32_t more);
  // One that never began, and that somebody has, becomes a stray.
  ~Maker() override;
  const Making& making() const noexcept { return making_; }
  tuttiComm_t pending() const noexcept { return comm_; }
  // The handle, which is somebody's from now on; null for a rank that only takes part. Before it begins, or after it
  // was awaited.
  tuttiComm_t publish() noexcept;
  void unpublish() noexcept { published_ = false; }
  // `awaited`: whom to tell when it is done; may be null. Throws Error when no thread can be had: then giveUp()
  // follows.
  static void begin(const std::shared_ptr<Maker>& maker, std::shared_ptr<Awaited> awaited);
  // One that has not begun. The stray says why.
  void giveUp(const Error& why) noexcept;
  // After it was awaited, and has been made after all.
  void destroy();

  void run() override;
  void hurry() override { hurryPending(comm_); }
  void halt() override { hurry(); }

 private:
  void end(std::shared_ptr<Communicator> made) noexcept;
  void fail(const Error& error) noexcept;
  MakingFailure failureOf(const Error& error) const noexcept;

  Making making_;
  const tuttiComm_t comm_;
  std::shared_ptr<Awaited> awaited_;
  bool published_ = false, over_ = false, made_ = false;
};

using Makers = std::vector<std::shared_ptr<Maker>>;

// Begins them all, side by side, and waits for those that are not nonBlocking. Nothing: they went well.
std::optional<MakingFailure> makeAll(const Makers& makers);
// Puts them into the open group.
void deferMakers(const Makers& makers);

// At the end of a making call: into the open group, in the background, or here and now. *comm is written on success.
// Throws Error.
tuttiResult_t make(tuttiComm_t* comm, Making making);
// The same with all ranks of a communicator, each with a handle of its own: all or none.
tuttiResult_t makeTogether(tuttiComm_t* comms, std::vector<Making> makings);

// What fails on this rank alone - an argument, a refusal, memory - the others would not hear of: they would wait for it
// as long as a join may take. As with every collective, the communicator fails. Once the join has begun they hear of a
// refusal or a missing rank where they meet; but of a rank that lacks something on its way there they may not.
void tellTheOthers(comm::Team& team, const Error& error, bool begun) noexcept;

template <class Body>
auto orTellTheOthers(comm::Team& team, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& thrown) {
    tellTheOthers(team, errorOf(thrown), false);
    throw;
  }
}

}  // namespace tutti::api
