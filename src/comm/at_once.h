// The short way of a call that repeats: nothing is queued before it, its plan and links stand, and it is like the last
// one but for its buffers. It is checked, recorded and numbered like all others, but needs no Task unless its peers
// let it wait.
#pragma once
#include "comm/task.h"
#include "team/executor.h"

namespace tutti::comm {

// kNot: nothing has been begun. kGoesOn: it has, and a Task made of `begun` goes on with it, whatever is the matter. By
// the thread that makes the call, and waits for it.
Again runAtOnce(HostState& state, const Call& call, BegunCall& begun) noexcept;

}  // namespace tutti::comm
