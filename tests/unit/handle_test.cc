// What a handle's shell goes through while its communicator is made, or not.
#include "api/handle.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

namespace tutti::api {
namespace {

const Error kStopped(ErrorCode::kRemote, "rank 1 stopped joining: it was aborted");

// Were one of them never given back, each such join would take a shell of its own.
TEST(Handle, EveryEndOfAJoinGivesTheShellBack) {
  const std::vector<std::function<void(tuttiComm_t)>> ends = {
      [](tuttiComm_t comm) { dropPending(comm); },
      [](tuttiComm_t comm) {
        abortHandle(comm, "a test");
        failHandle(comm, kStopped);
      },
      [](tuttiComm_t comm) {
        failHandle(comm, kStopped);
        abortHandle(comm, "a test");
      },
      [](tuttiComm_t comm) {
        abortHandle(comm, "a test");
        completeHandle(comm, nullptr);
      },
  };
  for (size_t i = 0; i < ends.size(); ++i) {
    std::set<tuttiComm_t> seen;
    for (int n = 0; n < 5000; ++n) {
      const tuttiComm_t comm = makePendingHandle(1, 2);
      seen.insert(comm);
      ends[i](comm);
    }
    EXPECT_LT(seen.size(), 1100u) << "end " << i;
  }
}

}  // namespace
}  // namespace tutti::api
