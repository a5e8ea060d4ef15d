#include <algorithm>
#include <deque>
#include <optional>

#include "api/check.h"
#include "api/guard.h"
#include "api/submit.h"
#include "comm/device_group.h"
#include "comm/group.h"

using namespace tutti;

namespace tutti::api {
namespace {

struct Group {
  int depth = 0;
  std::vector<comm::PendingCall> calls;
  std::vector<comm::DeviceCall> deviceCalls;
  std::vector<tuttiComm_t> handles;  // each once
  std::optional<Error> spoiled;
};

thread_local Group group;

void runGroup() {
  const Group ended = std::exchange(group, {});
  if (ended.spoiled) throw *ended.spoiled;
  if (ended.calls.empty() && ended.deviceCalls.empty()) return;
  std::deque<Visit> visits;
  for (tuttiComm_t handle : ended.handles) visits.emplace_back(handle, "tuttiGroupEnd");
  if (!ended.deviceCalls.empty()) comm::launchCalls(ended.deviceCalls);
  comm::runCalls(ended.calls);
}

void note(tuttiComm_t comm) {
  if (std::find(group.handles.begin(), group.handles.end(), comm) == group.handles.end()) group.handles.push_back(comm);
}

void submitToDevice(Visit& visit, comm::Call call, tuttiStream_t stream, tuttiComm_t comm) {
  comm::DeviceCall one{visit->shared_from_this(), std::move(call), stream};
  if (!inGroup()) return comm::launchCalls({std::move(one)});
  group.deviceCalls.push_back(std::move(one));
  note(comm);
}

}  // namespace

bool inGroup() noexcept { return group.depth > 0; }

void spoilGroup(const Error& error) {
  if (group.depth > 0 && !group.spoiled) group.spoiled = error;
}

void submit(Visit& visit, comm::Call call, tuttiStream_t stream, tuttiComm_t comm, const char* name) {
  if (visit->device()) return submitToDevice(visit, std::move(call), stream, comm);
  auto queue = checkStream(stream, name);
  if (inGroup()) {
    group.calls.push_back({visit->shared_from_this(), std::move(call), std::move(queue)});
    return note(comm);
  }
  if (queue)
    comm::queueCall(visit->shared_from_this(), std::move(call), *queue);
  else
    comm::runCall(*visit, std::move(call));
}

}  // namespace tutti::api

extern "C" {

tuttiResult_t tuttiGroupStart(void) {
  ++api::group.depth;
  return tuttiSuccess;
}

tuttiResult_t tuttiGroupEnd(void) {
  const std::vector<tuttiComm_t> handles = api::group.depth == 1 ? api::group.handles : std::vector<tuttiComm_t>{};
  const tuttiResult_t result = api::guarded(nullptr, [] {
    if (api::group.depth == 0)
      throw Error(ErrorCode::kInvalidUsage, "tuttiGroupEnd: no group is open on this thread (tuttiGroupStart)");
    if (--api::group.depth == 0) api::runGroup();
  });
  if (result != tuttiSuccess) {
    const std::string text = tuttiGetLastError(nullptr);
    for (tuttiComm_t handle : handles) api::record(handle, result, text);
  }
  return result;
}

}  // extern "C"
