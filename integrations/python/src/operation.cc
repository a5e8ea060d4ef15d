#include "operation.h"

#include <sched.h>
#include <time.h>

#include <utility>

#include "communicator.h"
#include "errors.h"

namespace nb = nanobind;

namespace tutti::python {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

// Short operations end while it yields; what takes longer is asked for less and less often.
class Pace {
 public:
  void rest() {
    if (Clock::now() - begin_ < microseconds(200)) {
      ::sched_yield();
      return;
    }
    const timespec span{0, std::chrono::nanoseconds(sleep_).count()};
    ::nanosleep(&span, nullptr);
    sleep_ = std::min(sleep_ * 2, microseconds(1000));
  }

 private:
  Clock::time_point begin_ = Clock::now();
  microseconds sleep_{20};
};

}  // namespace

bool waitUntil(const std::function<bool()>& done, std::optional<double> timeout) {
  constexpr auto kBetweenSignals = std::chrono::milliseconds(20);
  const auto begin = Clock::now();
  const auto over = [&] { return timeout && std::chrono::duration<double>(Clock::now() - begin).count() >= *timeout; };
  for (Pace pace;;) {
    {
      const nb::gil_scoped_release released;
      for (const auto look = Clock::now() + kBetweenSignals; Clock::now() < look; pace.rest()) {
        if (done()) return true;
        if (over()) return false;
      }
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

Operation::~Operation() {
  if (request_ != nullptr) tuttiRequestFree(request_);
}

bool Operation::poll() {
  std::lock_guard lock(mutex_);
  if (result_) return true;
  const tuttiResult_t now = request_ != nullptr ? tuttiRequestTest(request_) : tuttiSuccess;
  if (now == tuttiInProgress) return false;
  if (now != tuttiSuccess) text_ = textOf(now);
  result_ = now;
  return true;
}

bool Operation::ended() {
  if (!poll()) return false;
  const auto gone = std::exchange(keepers_, {});  // may run code of Python's, and let others come here
  return true;
}

bool Operation::test() {
  if (!ended()) return false;
  if (*result_ != tuttiSuccess) raise(*result_, text_);
  return true;
}

void Operation::wait(std::optional<double> timeout) {
  if (isCollecting(group_))
    raise(tuttiInvalidUsage, "an operation of a tutti.group() begins at the end of the block: wait for it there");
  if (!waitUntil([this] { return poll(); }, timeout))
    raise(tuttiTimeout, "the operation goes on: it has not ended within the timeout of this wait");
  test();
}

}  // namespace tutti::python
