// What the programs print of a call that failed.
#include "perf/failure.h"

#include <gtest/gtest.h>

namespace tutti::perf {
namespace {

TEST(PerfFailure, TheCallIsSaidOnce) {
  EXPECT_EQ(failureText("rank 3", "tuttiCommInitEnv", tuttiInvalidArgument, "tuttiCommInitEnv: comm is NULL"),
            "rank 3: tuttiCommInitEnv: an argument is wrong: comm is NULL");
  EXPECT_EQ(failureText("rank 3", "tuttiBarrier", tuttiRemoteError, "rank 1 left"),
            "rank 3: tuttiBarrier: another rank failed, left or aborted: rank 1 left");
  EXPECT_EQ(failureText("this process", "tuttiGroupStart", tuttiInternalError, ""),
            "this process: tuttiGroupStart: a defect of the library");
}

TEST(PerfFailure, NamesTheOptionThatWasTyped) {
  const std::string words = "tuttiCommInitEnv: config.transports: the list \"x\"";
  EXPECT_EQ(failureText("this process", "tuttiCommInitEnv", tuttiInvalidArgument, words),
            "this process: tuttiCommInitEnv: an argument is wrong: --transport: the list \"x\"");
  EXPECT_EQ(failureText("rank 1", "tuttiCommInitEnv", tuttiInvalidArgument, "config.algorithm: 'x' is no algorithm"),
            "rank 1: tuttiCommInitEnv: an argument is wrong: --algo: 'x' is no algorithm");
  EXPECT_EQ(failureText("rank 1", "tuttiCommInitEnv", tuttiInvalidArgument, "TUTTI_ALGO: 'x' is no algorithm"),
            "rank 1: tuttiCommInitEnv: an argument is wrong: TUTTI_ALGO: 'x' is no algorithm")
      << "of the variable, not the option";
}

TEST(PerfFailure, NothingWasCalledBeforeThereIsACommunicator) {
  EXPECT_EQ(failureText("this process", "tuttiCommInitEnv", tuttiInvalidUsage, "RANK=1 is set but WORLD_SIZE is not"),
            "this process: tuttiCommInitEnv: RANK=1 is set but WORLD_SIZE is not");
  EXPECT_EQ(failureText("rank 1", "tuttiAllReduce", tuttiInvalidUsage, "x"),
            "rank 1: tuttiAllReduce: the call does not fit what was called before, here or on another rank: x");
}

}  // namespace
}  // namespace tutti::perf
