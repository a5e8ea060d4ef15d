#include "api/guard.h"

#include <mutex>

using namespace tutti;

namespace tutti::api {
namespace {

thread_local std::string threadError;
thread_local std::string returnedError;  // what tuttiGetLastError's pointer points to

}  // namespace

tuttiResult_t record(tuttiComm_t comm, tuttiResult_t result, const std::string& text) noexcept {
  try {
    threadError = text;
    if (comm != nullptr && comm->magic == tuttiComm::kMagic) {
      std::lock_guard lock(comm->errorMutex);
      comm->lastError = text;
      // Errors that only concern one call's arguments leave the communicator as it was.
      if (comm->asyncError == tuttiSuccess && comm->communicator && comm->communicator->broken())
        comm->asyncError = result;
    }
  } catch (const std::exception&) {  // no memory for the text: the code alone must do
  }
  return result;
}

}  // namespace tutti::api

extern "C" {

const char* tuttiGetLastError(tuttiComm_t comm) {
  try {
    if (comm != nullptr && comm->magic == tuttiComm::kMagic) {
      std::lock_guard lock(comm->errorMutex);
      api::returnedError = comm->lastError;
    } else {
      api::returnedError = api::threadError;
    }
    return api::returnedError.c_str();
  } catch (const std::exception&) {
    return "out of host memory";
  }
}

const char* tuttiGetErrorString(tuttiResult_t result) {
  switch (result) {
    case tuttiSuccess:
      return "no error";
    case tuttiUnhandledCudaError:
      return "a CUDA call failed";
    case tuttiSystemError:
      return "the operating system refused something";
    case tuttiInternalError:
      return "a defect of the library";
    case tuttiInvalidArgument:
      return "an argument is wrong";
    case tuttiInvalidUsage:
      return "the call does not fit what was called before, here or on another rank";
    case tuttiRemoteError:
      return "another rank failed, left or aborted";
    case tuttiInProgress:
      return "still in progress";
    case tuttiTimeout:
      return "a deadline passed";
  }
  return "unknown result code";
}

tuttiResult_t tuttiGetVersion(int* version) {
  return api::guarded(nullptr, [&] {
    if (version == nullptr) throw Error(ErrorCode::kInvalidArgument, "tuttiGetVersion: version is NULL");
    *version = TUTTI_VERSION_CODE;
  });
}

}  // extern "C"
