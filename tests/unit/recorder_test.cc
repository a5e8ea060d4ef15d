// What the flight recorder forgets, and what it must not.
#include "team/recorder.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

Call message(bool sends, int peer) {
  Call call;
  call.collective = Collective::kSendRecv;
  call.sends = sends;
  call.root = peer;
  return call;
}

void make(Recorder& recorder, const Call& call, uint64_t number) {
  recorder.begin(call, call.fingerprint(number), true, 0);
}

// A rank is asked whether it has made a call, and its no ends the job as a deadlock.
TEST(FlightRecorder, KnowsThatACallWasMadeHoweverManyCameAfterIt) {
  Recorder recorder;
  recorder.expect(0, 3);
  make(recorder, Call{}, 0);
  make(recorder, message(true, 2), 0);
  make(recorder, message(false, 2), 0);
  for (uint64_t i = 0; i < 2 * Recorder::kEntries; ++i) make(recorder, message(true, 1), i);
  EXPECT_FALSE(recorder.collective(0));
  EXPECT_TRUE(recorder.begun(CallLine::kCollective, -1, 0));
  EXPECT_TRUE(recorder.begun(CallLine::kSend, 2, 0));
  EXPECT_TRUE(recorder.begun(CallLine::kReceive, 2, 0));
  EXPECT_TRUE(recorder.begun(CallLine::kSend, 1, 511));
}

TEST(FlightRecorder, KnowsWhatWasNotMade) {
  Recorder recorder;
  EXPECT_FALSE(recorder.begun(CallLine::kSend, 0, 0)) << "before the communicator stands";
  recorder.expect(0, 2);
  EXPECT_FALSE(recorder.begun(CallLine::kCollective, -1, 0));
  make(recorder, Call{}, 0);
  make(recorder, message(true, 1), 0);
  EXPECT_FALSE(recorder.begun(CallLine::kCollective, -1, 1));
  EXPECT_FALSE(recorder.begun(CallLine::kReceive, 1, 0));
  EXPECT_FALSE(recorder.begun(CallLine::kSend, 0, 0));
  for (const int nobody : {-1, 2, 1 << 30}) EXPECT_FALSE(recorder.begun(CallLine::kSend, nobody, 0));
}

TEST(FlightRecorder, KeepsTheCountsOfPairsForAWhile) {
  Recorder recorder;
  auto tables = std::make_shared<Tables>();
  tables->inputCounts = {0, 3};
  tables->outputCounts = {0, 64};
  Call call;
  call.collective = Collective::kAllToAllV;
  call.tables = std::move(tables);
  make(recorder, call, 7);
  EXPECT_EQ(recorder.countsWith(1, 7), (Recorder::PairCounts{3, 64}));
  EXPECT_EQ(recorder.countsWith(0, 7), (Recorder::PairCounts{0, 0}));
  EXPECT_FALSE(recorder.countsWith(1, 8));
  for (const int nobody : {-1, 2, 1 << 30}) EXPECT_FALSE(recorder.countsWith(nobody, 7));
  for (uint64_t i = 8; i < 1000; ++i) make(recorder, call, i);
  EXPECT_FALSE(recorder.countsWith(1, 7));
}

TEST(FlightRecorder, NumbersOfCallsWrap) {
  Recorder recorder;
  make(recorder, Call{}, 0xffff'ffff);
  EXPECT_TRUE(recorder.begun(CallLine::kCollective, -1, 0xffff'ffff));
  EXPECT_TRUE(recorder.begun(CallLine::kCollective, -1, 0xffff'fff0));
  EXPECT_FALSE(recorder.begun(CallLine::kCollective, -1, 0));
  make(recorder, Call{}, uint64_t{1} << 32);
  EXPECT_TRUE(recorder.begun(CallLine::kCollective, -1, 0));
  EXPECT_TRUE(recorder.begun(CallLine::kCollective, -1, 0xffff'ffff));
}

}  // namespace
}  // namespace tutti::comm
