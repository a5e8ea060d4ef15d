// The last step of every operation at the boundary: into the open group, onto the stream, or run here and now.
#pragma once
#include "api/handle.h"
#include "team/call.h"
#include "tutti/tutti.h"

namespace tutti::api {

bool inGroup() noexcept;
// Throws the Error of a call that ran. `visit` is the caller's stay in the communicator.
void submit(CallGuard& visit, comm::Call call, tuttiStream_t stream, tuttiComm_t comm, const char* name);
// A call failed between GroupStart and GroupEnd: the group will not run.
void spoilGroup(const Error& error) noexcept;
void spoilGroup() noexcept;  // for lack of memory

}  // namespace tutti::api
