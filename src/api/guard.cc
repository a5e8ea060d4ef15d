#include "api/guard.h"

#include <mutex>
#include <string>

#include "api/texts.h"

using namespace tutti;

namespace tutti::api {
namespace {

// A failure that no call of this communicator has reported yet: one of a call on a stream, or another rank's.
std::string unreported(tuttiComm_t comm) {
  if (comm->state.load(std::memory_order_acquire) & kJoining) return "";
  const auto communicator = comm->stopper.lock();
  return communicator && communicator->team().broken() ? communicator->team().failure().what() : "";
}

// Whether a call's result is that of the communicator's own failure.
bool tellsFailure(comm::Communicator& communicator, tuttiResult_t result) noexcept try {
  return communicator.team().broken() && static_cast<tuttiResult_t>(communicator.team().failure().code()) == result;
} catch (const std::exception&) {  // no memory for its text
  return false;
}

}  // namespace

void recordIn(tuttiComm_t comm, tuttiResult_t result, std::string_view text) noexcept {
  if (!isCommunicator(comm)) return;
  const bool joining = comm->state.load(std::memory_order_acquire) & kJoining;
  const auto communicator = joining ? nullptr : comm->stopper.lock();
  std::lock_guard lock(comm->errorMutex);
  setText(comm->lastError, text);
  // Errors that only concern one call's arguments leave the communicator as it was, also where it has failed meanwhile:
  // that is still to be told.
  if (comm->asyncError == tuttiSuccess && communicator && tellsFailure(*communicator, result))
    comm->asyncError = result;
}

tuttiResult_t record(tuttiComm_t comm, tuttiResult_t result, std::string_view text) noexcept {
  threadError.set(text);
  processError.set(text);
  recordIn(comm, result, text);
  return result;
}

}  // namespace tutti::api

extern "C" {

const char* tuttiGetLastError(tuttiComm_t comm) {
  try {
    if (api::isCommunicator(comm)) {
      const std::string failure = api::unreported(comm);
      std::lock_guard lock(comm->errorMutex);
      const bool isNews = comm->asyncError == tuttiSuccess && !failure.empty();
      api::returnedError.set(isNews ? failure : comm->lastError);
    } else {
      api::returnedError.set(api::threadError.get());
    }
    return api::returnedError.get();
  } catch (const std::exception&) {
    return outOfMemory.what();
  }
}

const char* tuttiGetLastProcessError(void) {
  api::processError.copyTo(api::returnedError);
  return api::returnedError.get();
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
      return "a call or a setting does not fit the others, here or on another rank";
    case tuttiRemoteError:
      return "another rank failed, left or aborted";
    case tuttiInProgress:
      return "still in progress";
    case tuttiTimeout:
      return "a deadline passed";
    case tuttiResultMax:
      break;
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
