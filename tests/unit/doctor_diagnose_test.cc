#include <gtest/gtest.h>

#include "doctor/diagnose.h"
#include "unit/doctor_records.h"

namespace tutti::doctor::test {
namespace {

// A size, and for each rank that has one its record: three collectives are behind all of them.
class Story {
 public:
  explicit Story(int size) : size_(size) {}
  Story& rank(int rank, std::vector<Call> calls) {
    std::vector<Call> all = {collective(0), collective(1), collective(2)};
    for (Call& call : calls) {
      call.order = all.size();
      all.push_back(call);
    }
    records_.push_back(record(rank, size_, all));
    return *this;
  }
  Story& failed(const std::string& code, const std::string& text) {
    records_.back().failure = Failure{code, text};
    return *this;
  }
  Story& writtenAt(double seconds) {
    records_.back().writtenNs = kStart + static_cast<int64_t>(seconds * 1e9);
    return *this;
  }
  Diagnosis diagnose() const { return doctor::diagnose(jobOf(records_)); }
  Finding first() const { return diagnose().findings.front(); }

 private:
  int size_;
  std::vector<Record> records_;
};

using Ranks = std::vector<int>;

void expectFinding(const Finding& finding, FindingKind kind, const Ranks& blamed,
                   const std::vector<std::string>& texts) {
  EXPECT_EQ(finding.kind, kind) << finding.text;
  EXPECT_EQ(finding.blamed, blamed) << finding.text;
  for (const std::string& text : texts) EXPECT_NE(finding.text.find(text), std::string::npos) << finding.text;
}

const Call kSum = unfinished(collective(3));

TEST(DoctorDiagnose, IdleInStepIsHealthy) {
  const Diagnosis diagnosis = Story(2).rank(0, {}).rank(1, {}).diagnose();
  EXPECT_TRUE(diagnosis.healthy());
  expectFinding(diagnosis.findings.front(), FindingKind::kHealthy, {}, {"in step", "all-reduce #2"});
}

TEST(DoctorDiagnose, NoCallsAreHealthy) {
  const Diagnosis diagnosis = doctor::diagnose(jobOf({record(0, 2, {}), record(1, 2, {})}));
  expectFinding(diagnosis.findings.front(), FindingKind::kHealthy, {}, {"none has made a collective"});
}

TEST(DoctorDiagnose, ARootMayBeAhead) {
  const Call ahead = collective(3, Collective::kBroadcast);
  const Diagnosis diagnosis = Story(2).rank(0, {ahead}).rank(1, {}).diagnose();
  EXPECT_TRUE(diagnosis.healthy());
  expectFinding(diagnosis.findings.front(), FindingKind::kHealthy, {}, {"rank 0 has come as far as broadcast #3"});
}

TEST(DoctorDiagnose, AnotherCollective) {
  const Call other = unfinished(collective(3, Collective::kBroadcast), 0);
  const Story story = Story(4).rank(0, {kSum}).rank(1, {other}).rank(2, {kSum}).rank(3, {kSum});
  expectFinding(story.first(), FindingKind::kOtherCollective, {1},
                {"ranks 0, 2, 3 wait in all-reduce #3 (float, 4 KiB, sum)",
                 "rank 1 waits in broadcast #3 (float, 4 KiB, root 0)"});
  EXPECT_FALSE(story.diagnose().healthy());
}

TEST(DoctorDiagnose, OnlyTheFirstCollectiveThatDiffersIsTold) {
  const Call other = collective(3, Collective::kBarrier), after = unfinished(collective(4, Collective::kAllGather));
  const Diagnosis diagnosis =
      Story(2).rank(0, {collective(3), unfinished(collective(4))}).rank(1, {other, after}).diagnose();
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  expectFinding(diagnosis.findings.front(), FindingKind::kOtherCollective, {}, {"rank 1 made barrier #3"});
}

TEST(DoctorDiagnose, AnotherCount) {
  Call more = kSum;
  more.count = 2048;
  more.bytes = 8192;
  const Finding finding = Story(4).rank(0, {kSum}).rank(1, {kSum}).rank(2, {more}).rank(3, {more}).first();
  expectFinding(finding, FindingKind::kOtherCount, {},
                {"ranks 0, 1 expect 1024 elements", "ranks 2, 3 expect 2048 elements"});
}

TEST(DoctorDiagnose, AnotherType) {
  Call other = kSum;
  other.type = DataType::kInt32;
  const Finding finding = Story(3).rank(0, {kSum}).rank(1, {kSum}).rank(2, {other}).first();
  expectFinding(finding, FindingKind::kOtherType, {2}, {"ranks 0, 1 expect float", "rank 2 expects int32"});
}

TEST(DoctorDiagnose, AnotherOperator) {
  Call other = kSum;
  other.op = ReduceOp::kMax;
  const Finding finding = Story(3).rank(0, {other}).rank(1, {kSum}).rank(2, {kSum}).first();
  expectFinding(finding, FindingKind::kOtherOperator, {0}, {"ranks 1, 2 expect the operator sum", "max"});
}

TEST(DoctorDiagnose, AnotherRoot) {
  const Call call = unfinished(collective(3, Collective::kReduce), 0);
  Call other = call;
  other.root = 1;
  const Finding finding = Story(3).rank(0, {call}).rank(1, {other}).rank(2, {call}).first();
  expectFinding(finding, FindingKind::kOtherRoot, {1}, {"rank 0 as the root", "rank 1 as the root"});
}

TEST(DoctorDiagnose, AnotherTag) {
  Call other = kSum;
  other.tag = 42;
  const Finding finding = Story(3).rank(0, {kSum}).rank(1, {other}).rank(2, {kSum}).first();
  expectFinding(finding, FindingKind::kOtherTag, {1}, {"ranks 0, 2 expect no tag", "rank 1 expects the tag 42"});
}

TEST(DoctorDiagnose, SeveralDifferencesTellTheWholeCalls) {
  Call other = kSum;
  other.op = ReduceOp::kMin;
  other.type = DataType::kFloat64;
  const Finding finding = Story(3).rank(0, {kSum}).rank(1, {kSum}).rank(2, {other}).first();
  expectFinding(finding, FindingKind::kOtherType, {2}, {"rank 2 waits in all-reduce #3 (double, 4 KiB, min)"});
}

TEST(DoctorDiagnose, MessagesThatDiffer) {
  Call send = message(Line::kSend, 1, 0, 0), receive = unfinished(message(Line::kReceive, 0, 0, 0), 0);
  send.count = 512;
  const Finding finding = Story(2).rank(0, {send}).rank(1, {receive}).first();
  expectFinding(finding, FindingKind::kOtherMessage, {0, 1}, {"rank 0 sends 512 float", "rank 1 expects 1024 float"});
}

TEST(DoctorDiagnose, ARankThatLeft) {
  const std::string text = "rank 2 (host n2, pid 102) left: connection closed, during all-reduce #3 (float, …)";
  const Finding finding =
      Story(3).rank(0, {kSum}).failed("remote error", text).rank(1, {kSum}).failed("remote error", text).first();
  expectFinding(finding, FindingKind::kLeft, {2},
                {"rank 2 (host n2, pid 102) left no record", "ranks 0, 1 say that it left: connection closed",
                 "while ranks 0, 1 were in all-reduce #3"});
}

TEST(DoctorDiagnose, ARankThatFailedFirst) {
  const Finding finding = Story(2)
                              .rank(0, {kSum})
                              .failed("remote error", "rank 1 (host n1, pid 101) gave up: no memory, during x")
                              .rank(1, {kSum})
                              .failed("system error", "no memory")
                              .first();
  expectFinding(finding, FindingKind::kFailed, {1}, {"rank 1 (host n1, pid 101) failed first: no memory"});
}

TEST(DoctorDiagnose, AnErrorThatNamesNobodyHere) {
  const Finding finding =
      Story(2).rank(0, {}).failed("remote error", "rank 77 (host x, pid 1) left").rank(1, {}).first();
  expectFinding(finding, FindingKind::kError, {}, {"rank 77"});
}

TEST(DoctorDiagnose, ARankThatHasNotCome) {
  const Finding finding = Story(3).rank(0, {kSum}).rank(1, {kSum}).rank(2, {}).first();
  expectFinding(finding, FindingKind::kNotCome, {2},
                {"rank 2 has not come to all-reduce #3", "in which ranks 0, 1 wait", "its last call was all-reduce #2",
                 "done 10.0 s before its record was written"});
}

TEST(DoctorDiagnose, ARankWithoutAnyCallHasNotCome) {
  const Call first = unfinished(collective(0), 1);
  const Finding finding = doctor::diagnose(jobOf({record(0, 2, {first}), record(1, 2, {})})).findings.front();
  expectFinding(finding, FindingKind::kNotCome, {1}, {"has not come to all-reduce #0", "it has made no call"});
}

TEST(DoctorDiagnose, AShortWaitIsNoHang) {
  const Story story = Story(2).rank(0, {unfinished(collective(3, Collective::kAllReduce, 9.9), 1)}).rank(1, {});
  EXPECT_TRUE(story.diagnose().healthy());
  expectFinding(story.first(), FindingKind::kRunning, {1}, {"may be nothing unusual"});
}

TEST(DoctorDiagnose, ARecordThatIsTooOld) {
  const Call late = unfinished(collective(3, Collective::kAllReduce, 5), 1);
  const Finding finding = Story(2).rank(0, {late}).rank(1, {}).writtenAt(2).first();
  expectFinding(finding, FindingKind::kOldRecord, {1}, {"the record of rank 1 was written 3.0 s before"});
}

TEST(DoctorDiagnose, ACircleOfReceives) {
  Story story(3);
  for (int r = 0; r < 3; ++r) story.rank(r, {unfinished(message(Line::kReceive, (r + 1) % 3, 0, 0), (r + 1) % 3)});
  expectFinding(story.first(), FindingKind::kCycle, {0, 1, 2}, {"rank 2 waits for rank 0 in receive #0 from rank 0"});
}

TEST(DoctorDiagnose, ACircleOfACollectiveAndAMessage) {
  const Call receive = unfinished(message(Line::kReceive, 0, 0, 0), 0);
  const Finding finding = Story(2).rank(0, {unfinished(collective(3), 1)}).rank(1, {receive}).first();
  expectFinding(finding, FindingKind::kCycle, {0, 1}, {"in all-reduce #3", "in receive #0 from rank 0"});
}

TEST(DoctorDiagnose, AChainEndsAtTheRankToBlame) {
  Story story(4);
  for (int r = 0; r < 3; ++r) story.rank(r, {unfinished(message(Line::kReceive, r + 1, 0, 0), r + 1)});
  const Diagnosis diagnosis = story.rank(3, {}).diagnose();
  expectFinding(diagnosis.findings.at(0), FindingKind::kNoSuchMessage, {3},
                {"rank 2 waits in receive #0 from rank 3", "no such send"});
  expectFinding(diagnosis.findings.at(1), FindingKind::kChain, {3},
                {"rank 0 waits for rank 1", "rank 1 waits for rank 2", "rank 3 waits for nobody"});
}

TEST(DoctorDiagnose, AMessageTooFew) {
  const auto receive = [](uint64_t n) { return message(Line::kReceive, 1, n, 0); };
  const Finding finding =
      Story(2).rank(0, {receive(0), unfinished(receive(1), 1)}).rank(1, {message(Line::kSend, 0, 0, 0)}).first();
  expectFinding(finding, FindingKind::kNoSuchMessage, {1}, {"rank 1 has made only 1 such send"});
}

TEST(DoctorDiagnose, ForgottenMessagesAreNotMissed) {
  const Call old = unfinished(message(Line::kReceive, 1, 4, 0), -1), later = message(Line::kSend, 0, 9, 0);
  for (const Finding& finding : Story(2).rank(0, {old}).rank(1, {later}).diagnose().findings)
    EXPECT_NE(finding.kind, FindingKind::kNoSuchMessage) << finding.text;
}

TEST(DoctorDiagnose, AWaitForARankWithoutARecord) {
  const Finding finding =
      Story(3).rank(0, {unfinished(collective(3), 2)}).rank(1, {unfinished(collective(3), 2)}).first();
  expectFinding(finding, FindingKind::kNoRecord, {2},
                {"ranks 0, 1 wait for rank 2 in all-reduce #3", "rank 2 (host n2, pid 102) left no record"});
}

TEST(DoctorDiagnose, AMismatchThatOnlyTheErrorTells) {
  const std::string text = "calls do not match: rank 1 (host n1, pid 101) is in all-reduce #3 (…), rank 0 (…) is in …";
  const Diagnosis diagnosis = Story(2).rank(1, {unfinished(collective(3), 0)}).failed("invalid usage", text).diagnose();
  ASSERT_EQ(diagnosis.findings.size(), 1U);
  expectFinding(diagnosis.findings.front(), FindingKind::kToldMismatch, {}, {"rank 1 found that " + text});
}

TEST(DoctorDiagnose, AnErrorIsToldBesideAWaitForARankWithoutARecord) {
  const Diagnosis diagnosis =
      Story(2).rank(1, {unfinished(collective(3), 0)}).failed("system error", "no memory").diagnose();
  expectFinding(diagnosis.findings.at(0), FindingKind::kNoRecord, {0}, {"rank 0 (host n0, pid 100) left no record"});
  expectFinding(diagnosis.findings.at(1), FindingKind::kError, {}, {"rank 1 failed: system error: no memory"});
}

TEST(DoctorDiagnose, ACallThatDoesNotGoOn) {
  const Finding finding =
      Story(2).rank(0, {unfinished(collective(3), 1)}).rank(1, {unfinished(collective(3), 0)}).first();
  expectFinding(finding, FindingKind::kStuck, {0, 1}, {"what they send does not arrive"});
}

TEST(DoctorDiagnose, AYoungCallMayBeGoingOn) {
  const auto young = [](int peer) { return unfinished(collective(3, Collective::kAllReduce, 9.99), peer); };
  const Finding finding = Story(2).rank(0, {young(1)}).rank(1, {young(0)}).first();
  expectFinding(finding, FindingKind::kRunning, {0, 1},
                {"ranks 0, 1 wait for each other inside", "may well be going on"});
  EXPECT_EQ(finding.text.find("does not arrive"), std::string::npos) << finding.text;
}

// The one record was written while the rank waited in the first call, the other when both had gone on.
TEST(DoctorDiagnose, ACircleOfRecordsOfDifferentMomentsIsNone) {
  const auto at = [](uint64_t number, double when) { return collective(number, Collective::kAllReduce, when); };
  const Finding young =
      Story(2).rank(0, {unfinished(at(3, 9.98), 1)}).rank(1, {at(3, 9.98), unfinished(at(4, 9.99), 0)}).first();
  expectFinding(young, FindingKind::kRunning, {0, 1},
                {"rank 0 waits for rank 1 in all-reduce #3", "may well be going on"});
  const Finding overtaken =
      Story(2).rank(0, {unfinished(at(3, 2), 1)}).writtenAt(5).rank(1, {at(3, 5.5), unfinished(at(4, 6), 0)}).first();
  EXPECT_NE(overtaken.kind, FindingKind::kCycle) << overtaken.text;
}

TEST(DoctorDiagnose, LinksThatAreNotMade) {
  const auto connecting = [](int peer) { return unfinished(collective(3), peer, State::kConnecting); };
  const Finding finding = Story(2).rank(0, {connecting(1)}).rank(1, {connecting(0)}).first();
  expectFinding(finding, FindingKind::kStuck, {0, 1}, {"the links between them are not made"});
}

TEST(DoctorDiagnose, CallsUnderWayAreHealthy) {
  const Call now = unfinished(collective(3, Collective::kAllReduce, 9.99));
  const Diagnosis diagnosis = Story(2).rank(0, {now}).rank(1, {now}).diagnose();
  EXPECT_TRUE(diagnosis.healthy());
  expectFinding(diagnosis.findings.front(), FindingKind::kRunning, {}, {"under way"});
}

}  // namespace
}  // namespace tutti::doctor::test
