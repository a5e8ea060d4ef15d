// The C boundary: no exception leaves it. Each becomes a result code, and its text the last error of the calling thread
// and of the communicator.
#pragma once
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "api/handle.h"
#include "base/error.h"
#include "tutti/tutti.h"

namespace tutti::api {

// Notes the error for tuttiGetLastError; returns `result`.
tuttiResult_t record(tuttiComm_t comm, tuttiResult_t result, const std::string& text) noexcept;

template <class Body>
tuttiResult_t guarded(tuttiComm_t comm, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return tuttiSuccess;
  } catch (const Error& error) {
    return record(comm, static_cast<tuttiResult_t>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return record(comm, tuttiSystemError, "out of host memory");
  } catch (const std::system_error& error) {  // no further thread, mostly
    return record(comm, tuttiSystemError, error.what());
  } catch (const std::exception& error) {
    return record(comm, tuttiInternalError, error.what());
  }
}

}  // namespace tutti::api
