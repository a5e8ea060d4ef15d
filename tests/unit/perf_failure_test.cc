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
  const std::string both = "p2p: left out by config.transports; tcp: left out by config.transports";
  EXPECT_EQ(failureText("rank 1", "tuttiSend", tuttiTimeout, both + "; within 5 ms, config.operationTimeoutMs"),
            "rank 1: tuttiSend: a deadline passed: p2p: left out by --transport; tcp: left out by --transport; within "
            "5 ms, -T");
}

TEST(PerfFailure, NothingWasCalledBeforeThereIsACommunicator) {
  EXPECT_EQ(failureText("this process", "tuttiCommInitEnv", tuttiInvalidUsage, "RANK=1 is set but WORLD_SIZE is not"),
            "this process: tuttiCommInitEnv: RANK=1 is set but WORLD_SIZE is not");
  EXPECT_EQ(failureText("rank 1", "tuttiAllReduce", tuttiInvalidUsage, "x"),
            "rank 1: tuttiAllReduce: a call or a setting does not fit the others, here or on another rank: x");
}

}  // namespace
}  // namespace tutti::perf
