// The C boundary: no exception leaves it. Each becomes a result code, and its text the last error of the calling thread
// and of the communicator.
#pragma once
#include <pthread.h>

#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "api/handle.h"
#include "base/error.h"
#include "tutti/tutti.h"

namespace tutti::api {

// Notes the error for tuttiGetLastError; returns `result`.
tuttiResult_t record(tuttiComm_t comm, tuttiResult_t result, std::string_view text) noexcept;
// The communicator's part of that; comm may be anything that is no communicator.
void recordIn(tuttiComm_t comm, tuttiResult_t result, std::string_view text) noexcept;

// While it lives, pthread_cancel waits: unwinding a call in its middle would end the process.
class Uncancelled {
 public:
  Uncancelled() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

template <class Body>
[[gnu::always_inline]] inline tuttiResult_t guarded(tuttiComm_t comm, Body&& body) noexcept {
  const Uncancelled held;
  try {
    std::forward<Body>(body)();
    return tuttiSuccess;
  } catch (const Error& error) {
    return record(comm, static_cast<tuttiResult_t>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return record(comm, tuttiSystemError, outOfMemory.what());
  } catch (const std::system_error& error) {  // of a mutex, say
    return record(comm, tuttiSystemError, error.what());
  } catch (const std::exception& error) {
    return record(comm, tuttiInternalError, error.what());
  }
}

}  // namespace tutti::api
