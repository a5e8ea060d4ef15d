// The last step of every operation at the boundary: into the open group, onto the stream, or run here and now.
#pragma once
#include <exception>
#include <string_view>
#include <utility>

#include "api/handle.h"
#include "base/error.h"
#include "team/call.h"
#include "team/executor.h"
#include "team/operation.h"
#include "tutti/tutti.h"

namespace tutti::api {

bool inGroup() noexcept;
// Whether the calling thread's open group has collected a call of it, which runs at the group's end.
bool isCollected(const comm::Operation& operation) noexcept;
// Throws the Error of a call that ran. `visit` is the caller's stay in the communicator.
void submit(CallGuard& visit, comm::Call&& call, tuttiStream_t stream, tuttiComm_t comm, const char* name);
// The same of one without a stream, which is remembered by its arguments where it runs here and now, and goes well.
void submitPlain(CallGuard& visit, comm::Call&& call, const Asked& asked, tuttiComm_t comm, const char* name);
// What became of a plain call that may have been made before: in one word, which every small call returns.
class Before {
 public:
  Before() = default;
  explicit Before(tuttiResult_t result) noexcept : what_(result) {}
  // It has not been made, and the caller is inside of the communicator from here on.
  static Before whoIsInside() noexcept { return Before(kInside); }
  bool made() const noexcept { return what_ >= 0; }  // again
  tuttiResult_t result() const noexcept { return static_cast<tuttiResult_t>(what_); }
  bool entered() const noexcept { return what_ == kInside; }

 private:
  static constexpr int kNothing = -1, kInside = -2;
  explicit Before(int what) noexcept : what_(what) {}
  int what_ = kNothing;
};
// Makes a plain call that the communicator has made before with the very same arguments: what was checked and found
// then still holds, so it goes to its executor at once (docs/decisions/0046). Else nothing has been done, and it is a
// call as any other.
Before madeAgain(tuttiComm_t comm, const Asked& asked) noexcept;
// The same of a call that has a configuration of its own.
void submitConfigured(CallGuard& visit, comm::Call call, tuttiStream_t stream, tuttiComm_t comm, const char* name,
                      const tuttiCallConfig_t& config);
// An operation that somebody asks for, on its way as submit() says. Throws Error, which the operation then ends with.
void submitOperation(tuttiComm_t comm, comm::PendingCall pending, const char* name);
// Whether a call on that stream goes past runHere().
bool isQueued(const comm::Executor& executor, const comm::CallStream& stream) noexcept;
// Here and now, without an allocation. Throws the Error of a call that ran.
void runHere(comm::Executor& executor, const comm::Call& call, const char* name);
// Throws the Error of an operation whose request has not seen its end.
[[noreturn]] void refuseRunning(std::string_view what, const char* name);

// A call failed between GroupStart and GroupEnd: the group will not run.
void spoilGroup(const Error& error) noexcept;
// The frame of every call that a group collects.
template <class Body>
[[gnu::always_inline]] inline auto spoiling(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& thrown) {
    spoilGroup(errorOf(thrown));
    throw;
  }
}

}  // namespace tutti::api
