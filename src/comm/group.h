// Calls between tuttiGroupStart and tuttiGroupEnd are collected and then run side by side: those without a stream on
// the calling thread, those of each stream on its thread.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "comm/call.h"
#include "comm/communicator.h"
#include "engine/stream.h"

namespace tutti::comm {

struct PendingCall {
  std::shared_ptr<Communicator> communicator;
  Call call;
  std::shared_ptr<engine::Stream> stream;  // null: the calling thread
};

// Starts all of them, in this order, and runs those of the calling thread to their end. Throws the first Error; calls
// on streams report theirs through the stream.
void runCalls(std::vector<PendingCall> calls);

// The same for one call, without any allocation when it has no stream.
void runCall(Communicator& communicator, Call call);
void queueCall(const std::shared_ptr<Communicator>& communicator, Call call, engine::Stream& stream);

}  // namespace tutti::comm
