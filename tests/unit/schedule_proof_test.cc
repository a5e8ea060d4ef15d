// Proves every builder: each algorithm of each collective, for all sizes 1 … 64 and every root, and for sampled sizes
// beyond. verify() checks out-of-place and in-place use, the stated depth and the order of the reduction in one go.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <random>

#include "base/error.h"
#include "engine/early.h"
#include "proof/races.h"
#include "proof/verify.h"
#include "schedule/algorithm.h"
#include "schedule/builder.h"
#include "support/sanitized.h"
#include "unit/every_schedule.h"

namespace tutti::proof {

using namespace schedule;

namespace {

using schedule::test::buildAll;
using schedule::test::nameOfCase;

void prove(Algorithm algorithm, const Shape& shape) {
  const auto schedules = buildAll(algorithm, shape);
  const Verdict verdict = verify(schedules, schedules[0].depth);
  EXPECT_TRUE(verdict.ok) << nameOf(shape.collective) << " " << nameOf(algorithm) << " of " << shape.size
                          << " ranks, root " << shape.root << ": " << verdict.problems[0];
  EXPECT_LE(schedules[0].depth, shape.depth);
}

// From 0 (equal hosts) on, ever less regular ways to put ranks on hosts.
std::vector<int> grouping(int kind, int size) {
  std::vector<int> groupOf;
  const int width = size % 4 == 0 ? 4 : size % 3 == 0 ? 3 : 2;
  for (int rank = 0; rank < size; ++rank) {
    switch (kind) {
      case 0:
        groupOf.push_back(rank / width);
        break;  // equal, in order; the last may be short
      case 1:
        groupOf.push_back(7 - rank % 3);
        break;  // dealt round
      case 2:
        groupOf.push_back(rank == size / 2 ? 1 : 0);
        break;  // one rank apart
      default:
        groupOf.push_back(rank * rank % 11 % 5);
        break;  // uneven and mixed
    }
  }
  return groupOf;
}
constexpr int kGroupings = 4;

class Proof : public testing::TestWithParam<int> {
 protected:
  Collective collective() const { return static_cast<Collective>(GetParam()); }

  void proveRoots(Algorithm algorithm, Shape shape, int stride) {
    const int roots = hasRoot(shape.collective) ? shape.size : 1;
    for (shape.root = 0; shape.root < roots; shape.root += stride) prove(algorithm, shape);
  }
};

TEST_P(Proof, HoldsForEverySizeAndRoot) {
  for (Algorithm algorithm : algorithmsFor(collective())) {
    for (int size = 1; size <= 64; size += kSanitized && size > 9 ? 11 : 1) {
      Shape shape;
      shape.collective = collective();
      shape.size = size;
      proveRoots(algorithm, shape, kSanitized ? 3 : 1);
    }
  }
}

TEST_P(Proof, HoldsForEveryGrouping) {
  const auto has = algorithmsFor(collective());
  if (std::find(has.begin(), has.end(), Algorithm::kHierarchical) == has.end()) {
    EXPECT_NE(collective(), Collective::kAllReduce);
    return;
  }
  for (int kind = 0; kind < kGroupings; ++kind) {
    for (int size = 1; size <= 64; size += kSanitized && size > 9 ? 11 : 1) {
      Shape shape;
      shape.collective = collective();
      shape.size = size;
      shape.groupOf = grouping(kind, size);
      proveRoots(Algorithm::kHierarchical, shape, kSanitized ? 3 : 1);
      shape.depth = slots::kDepthInStreams;
      proveRoots(Algorithm::kHierarchical, shape, 7);
      // Those go by it in the order of the ranks alone.
      for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree})
        if (std::ranges::find(has, algorithm) != has.end()) proveRoots(algorithm, shape, 7);
    }
  }
}

// Rings, chains and trees in whatever order the ranks of a host have.
TEST_P(Proof, HoldsForEveryOrder) {
  const auto has = algorithmsFor(collective());
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    if (std::ranges::find(has, algorithm) == has.end()) continue;
    for (int size = 1; size <= 64; size += kSanitized && size > 9 ? 11 : 1) {
      std::mt19937 random(static_cast<unsigned>(size));
      for (const int kind : {-1, 1, 3}) {
        Shape shape;
        shape.collective = collective();
        shape.size = size;
        if (kind >= 0) shape.groupOf = grouping(kind, size);
        shape.within.resize(static_cast<size_t>(size));
        std::iota(shape.within.begin(), shape.within.end(), 0);
        std::shuffle(shape.within.begin(), shape.within.end(), random);
        proveRoots(algorithm, shape, 7);
        shape.bothWays = true;
        if (algorithm == Algorithm::kRing && hasRoot(collective())) proveRoots(algorithm, shape, 7);
      }
    }
  }
}

// Where all ranks together have n² steps, slots or cells (ring and direct exchanges, and any all-gather or
// reduce-scatter, whose outputs or inputs alone are n² cells) a proof for 4096 ranks takes minutes and gigabytes; the
// sizes below take seconds. Trees and chains, and hierarchical broadcast and reduce, go all the way. The other proofs
// up to 4096 are in tests/acceptance/proofs, which names the size that it wants in the environment.
int largestFor(Collective collective, Algorithm algorithm) {
  if (kSanitized) return 100;
  const bool rooted = hasRoot(collective), whole = collective == Collective::kAllReduce;
  switch (algorithm) {
    case Algorithm::kTree:
      return 4096;
    case Algorithm::kRing:
    case Algorithm::kHierarchical:
      return rooted ? 4096 : whole ? 1000 : 500;
    case Algorithm::kHalving:
      return whole ? 1024 : 500;
    case Algorithm::kBruck:
      return 1024;
    case Algorithm::kDirect:
      return rooted ? 1024 : 257;
    default:
      return 257;
  }
}

int wantedLargest() {
  const char* const wanted = std::getenv("TUTTI_TEST_LARGEST_PROOF");
  return wanted == nullptr ? 0 : std::atoi(wanted);
}

TEST_P(Proof, HoldsForSampledLargeSizes) {
  const int wanted = wantedLargest();
  for (Algorithm algorithm : algorithmsFor(collective())) {
    const int largest = largestFor(collective(), algorithm);
    for (int size : {100, 127, 128, 255, 257, 500, 1000, 1024, 2049, 4096}) {
      if (size > std::max(largest, wanted)) break;
      if (wanted != 0 && size <= largest) continue;
      Shape shape;
      shape.collective = collective();
      shape.size = size;
      shape.root = hasRoot(collective()) ? size / 3 : 0;
      if (algorithm == Algorithm::kHierarchical) shape.groupOf = grouping(0, size);
      prove(algorithm, shape);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Builders, Proof, testing::Values(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14), nameOfCase);

TEST(Messages, AreProved) {
  const std::vector<Schedule> pair{buildSend(0, 2, 1), buildReceive(1, 2, 0)};
  EXPECT_TRUE(verify(pair, 1).ok);
  const std::vector<Schedule> self{buildSelf(0, 1)};
  EXPECT_TRUE(verify(self, 1).ok);
  const std::vector<Schedule> unheard{buildSend(0, 2, 1), buildSend(1, 2, 0)};
  EXPECT_FALSE(verify(unheard, 1).ok);
}

// Larger FIFOs than needed change nothing; smaller ones are a deadlock that names who waits.
TEST(Verify, KnowsTheDepth) {
  Shape shape;
  shape.size = 5;
  const auto ring = buildAll(Algorithm::kRing, shape);
  EXPECT_EQ(ring[0].depth, 2);
  EXPECT_EQ(smallestDepth(ring), 2);
  EXPECT_TRUE(verify(ring, 8).ok);
  const Verdict shallow = verify(ring, 1);
  ASSERT_FALSE(shallow.ok);
  EXPECT_NE(shallow.problems[0].find("deadlock at depth 1: rank 0"), std::string::npos) << shallow.problems[0];
  auto boastful = ring;
  for (Schedule& schedule : boastful) schedule.depth = 3;
  EXPECT_FALSE(verify(boastful, 3).ok);
}

// Between hosts several rounds are under way, as many as the links' slots let be; within one they go one by one.
TEST(Verify, RoundsOverlapBetweenHosts) {
  Shape shape;
  shape.size = 4;
  const auto lagOf = [&](Algorithm algorithm) { return int{buildAll(algorithm, shape)[0].maxLag}; };
  EXPECT_EQ(lagOf(Algorithm::kRing), 0);
  shape.groupOf = {0, 1, 2, 3};
  EXPECT_EQ(lagOf(Algorithm::kRing), 6);  // six hops, one iteration each
  shape.groupOf = {0, 0, 1, 1};
  EXPECT_EQ(lagOf(Algorithm::kHierarchical), 2);  // two iterations of the one between two hosts
  shape.depth = 2;
  EXPECT_EQ(lagOf(Algorithm::kHierarchical), 0);
}

TEST(Verify, SaysWhatIsWrong) {
  Shape shape;
  shape.size = 3;
  auto schedules = buildAll(Algorithm::kOneShot, shape);
  schedules[1].steps.pop_back();
  const Verdict verdict = verify(schedules, 1);
  ASSERT_FALSE(verdict.ok);
  EXPECT_NE(verdict.problems[0].find("deadlock"), std::string::npos);
  EXPECT_FALSE(verify({}, 1).ok);
}

// The sum is stored, and so rounded, before it is divided: other bits than where one step does both.
TEST(Verify, SeesARoundingThatOtherRanksDoNotMake) {
  Shape shape;
  shape.size = 3;
  auto schedules = buildAll(Algorithm::kOneShot, shape);
  Schedule& last = schedules[2];
  last.steps[1].flags = 0;
  Step divides;
  divides.fromBegin = static_cast<uint32_t>(last.operands.size());
  divides.toBegin = divides.fromBegin + 1;
  divides.fromCount = divides.toCount = 1;
  divides.flags = kFinalise;
  last.operands.insert(last.operands.end(), {Operand::output(), Operand::output()});
  last.steps.push_back(divides);
  const Verdict verdict = verify(schedules, 1);
  ASSERT_FALSE(verdict.ok);
  EXPECT_NE(verdict.problems[0].find("rounds it elsewhere"), std::string::npos) << verdict.problems[0];
}

TEST(Verify, SeesAnInputThatIsOverwrittenInPlace) {
  Shape shape;
  shape.size = 2;
  auto schedules = buildAll(Algorithm::kOneShot, shape);
  for (Schedule& schedule : schedules) {  // sum first what has come, send the input afterwards
    Step late = schedule.steps[0];
    schedule.steps.push_back(late);
    schedule.operands[schedule.steps[1].toBegin] = Operand::output();
  }
  const Verdict verdict = verify(schedules, 1);
  ASSERT_FALSE(verdict.ok);
  EXPECT_NE(verdict.problems[0].find("wrong in place"), std::string::npos) << verdict.problems[0];
}

std::vector<std::string> racesOf(const std::vector<Schedule>& schedules, InPlace inPlace,
                                 DirectBy by = DirectBy::kKernel) {
  Problems problems;
  checkDirect(schedules, Wiring(schedules), std::array{DirectUse{inPlace, by}}, problems);
  return problems.take();
}

// One group of 2 to 9 ranks, and some of several.
std::vector<std::vector<int>> groupingsOfFew() {
  std::vector<std::vector<int>> all{{0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 1, 0}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1, 1}};
  for (size_t size = 2; size <= 9; ++size) all.emplace_back(size, 0);
  return all;
}

// The schedules of every algorithm of every collective among these.
template <class Visit>
void forSchedulesOfFew(Visit visit) {
  for (int c = 0; c < kCollectives; ++c) {
    Shape shape;
    shape.collective = static_cast<Collective>(c);
    if (shape.collective == Collective::kSendRecv) continue;
    for (const Algorithm algorithm : algorithmsFor(shape.collective))
      for (const auto& groupOf : groupingsOfFew()) {
        shape.groupOf = groupOf;
        shape.size = static_cast<int>(groupOf.size());
        SCOPED_TRACE(std::string(nameOf(shape.collective)) + " " + std::string(nameOf(algorithm)));
        visit(buildAll(algorithm, shape));
      }
  }
}

// A builder that says that its direct links are right out of place only is right about that: it loses nothing.
TEST(DirectLinks, AreRightInPlaceWhereverTheyCanBe) {
  int outOfPlaceOnly = 0;
  forSchedulesOfFew([&](const std::vector<Schedule>& schedules) {
    const bool right = racesOf(schedules, InPlace::kAll).empty();
    EXPECT_TRUE(racesOf(schedules, InPlace::kSome).empty());
    EXPECT_EQ(schedules[0].directInPlace, right);
    for (const InPlace inPlace : {InPlace::kNobody, InPlace::kSome, right ? InPlace::kAll : InPlace::kNobody})
      EXPECT_TRUE(racesOf(schedules, inPlace, DirectBy::kLane).empty());
    EXPECT_TRUE(verify(schedules, schedules[0].depth).ok);
    outOfPlaceOnly += !right;
  });
  EXPECT_GT(outOfPlaceOnly, 0);
}

// As lanes post where all is lent.
std::vector<bool> coveredBy(const engine::Ahead& step, size_t rounds) {
  std::vector<bool> covered;
  while (covered.size() < rounds) {
    const size_t posted = step.roundsFrom(covered.size(), rounds);
    covered.push_back(false);
    covered.insert(covered.end(), posted - 1, true);
  }
  return covered;
}

Covered coveredOf(const std::vector<Schedule>& schedules, size_t rounds) {
  Covered covered;
  for (const Schedule& one : schedules) {
    covered.emplace_back();
    for (const engine::Ahead& step : engine::postsAheadOf(one)) covered.back().push_back(coveredBy(step, rounds));
  }
  return covered;
}

// One post of all rounds of a step, as lanes make it, tells no more than what was so when the first was posted.
TEST(DirectLinks, AreRightWhereOnePostIsOfAllRounds) {
  int covered = 0;
  forSchedulesOfFew([&](const std::vector<Schedule>& schedules) {
    std::vector<DirectUse> uses{{InPlace::kNobody, DirectBy::kLane}, {InPlace::kSome, DirectBy::kLane}};
    if (schedules[0].directInPlace) uses.push_back({InPlace::kAll, DirectBy::kLane});
    for (const int rounds : {2, 4}) {
      const Covered early = coveredOf(schedules, rounds);
      for (const auto& steps : early)
        for (const auto& step : steps) covered += static_cast<int>(std::ranges::count(step, true));
      Problems problems;
      checkDirect(schedules, Wiring(schedules), uses, problems, Lengths::uniform(rounds), early);
      const auto found = problems.take();
      EXPECT_TRUE(found.empty()) << found.front();
    }
  });
  EXPECT_GT(covered, 1000);
}

// Of more rounds than there are between the passes some are posted one by one: the last to be added up, and the first
// sums.
TEST(DirectLinks, AreRightWhereTwoPassesOverlap) {
  constexpr int kRounds = 133;
  for (const int size : {2, 3, 5}) {
    Shape shape;
    shape.size = size;
    const auto schedules = buildAll(Algorithm::kTwoPass, shape);
    const Covered early = coveredOf(schedules, kRounds);
    int alone = 0;
    for (const auto& step : early[0]) alone += static_cast<int>(std::ranges::count(step, false));
    EXPECT_GT(alone, kRounds + 10) << "sums, of the step that receives, and what overlaps";
    Problems problems;
    const std::vector<DirectUse> uses{{InPlace::kNobody, DirectBy::kLane}, {InPlace::kAll, DirectBy::kLane}};
    checkDirect(schedules, Wiring(schedules), uses, problems, Lengths::uniform(kRounds), early);
    const auto found = problems.take();
    EXPECT_TRUE(found.empty()) << found.front();
  }
}

// Of steps whose order does count it is seen that they could not do with one.
TEST(DirectLinks, OnePostOfWhatComesStepByStepIsRefused) {
  Shape shape;
  shape.size = 3;
  const auto schedules = buildAll(Algorithm::kTwoShot, shape);
  constexpr engine::Ahead kAnyRound{.may = true};
  Covered all;
  for (const Schedule& one : schedules) all.emplace_back(one.steps.size(), coveredBy(kAnyRound, 4));
  Problems problems;
  const std::vector<DirectUse> uses{{InPlace::kNobody, DirectBy::kLane}};
  checkDirect(schedules, Wiring(schedules), uses, problems, Lengths::uniform(4), all);
  EXPECT_FALSE(problems.take().empty());
}

// What lanes lend: where it is right in place by kernels, it is by lanes.
TEST(DirectLinks, LanesLendWhatStays) {
  Shape shape;
  shape.size = 4;
  shape.collective = Collective::kAllToAll;
  auto schedules = buildAll(Algorithm::kDirect, shape);
  EXPECT_TRUE(racesOf(schedules, InPlace::kNobody, DirectBy::kLane).empty());
  EXPECT_FALSE(racesOf(schedules, InPlace::kAll, DirectBy::kLane).empty());  // each overwrites what others read
  shape.collective = Collective::kAllReduce;
  schedules = buildAll(Algorithm::kTwoShot, shape);
  EXPECT_TRUE(racesOf(schedules, InPlace::kAll, DirectBy::kLane).empty());
}

// Peers may add an input up where it lies; one that is written over while they may read it is a race.
TEST(DirectLinks, InputsAreLentForAnyUse) {
  Shape shape;
  shape.size = 3;
  auto schedules = buildAll(Algorithm::kOneShot, shape);
  EXPECT_TRUE(racesOf(schedules, InPlace::kNobody, DirectBy::kLane).empty());
  const auto problems = racesOf(schedules, InPlace::kAll, DirectBy::kLane);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("may be using at that time"), std::string::npos) << problems[0];
  EXPECT_TRUE(racesOf(buildAll(Algorithm::kTwoShot, shape), InPlace::kAll, DirectBy::kLane).empty());
}

// A chain of three, whose middle writes over what it has handed on.
TEST(DirectLinks, AreRefusedWhereALaneLendsWhatChanges) {
  Shape shape;
  shape.size = 3;
  shape.collective = Collective::kBroadcast;
  for (const bool changes : {false, true}) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < 3; ++rank) {
      Builder builder(shape, rank, SegmentMap::kSplit, 1);
      auto step = builder.at(0);
      if (rank == 0) step.from(Operand::input()).toRank(1).lands();
      if (rank == 1) step.fromRank(0).to(Operand::output()).toRank(2).lands();
      if (rank == 2) step.fromRank(1).to(Operand::output());
      if (rank == 1 && changes) builder.at(0).from(Operand::input()).to(Operand::output());
      schedules.push_back(builder.finish(1));
    }
    EXPECT_EQ(racesOf(schedules, InPlace::kNobody, DirectBy::kLane).empty(), !changes);
    EXPECT_TRUE(racesOf(schedules, InPlace::kNobody, DirectBy::kKernel).empty());
  }
}

// A rank in place that lent its buffer all the same.
TEST(DirectLinks, AreSeenWhereARankInPlaceOpensItsBuffer) {
  Shape shape;
  shape.collective = Collective::kAllToAll;
  shape.size = 4;
  auto schedules = buildAll(Algorithm::kDirect, shape);
  EXPECT_TRUE(racesOf(schedules, InPlace::kSome).empty());
  for (Schedule& schedule : schedules) schedule.directInPlace = true;
  EXPECT_FALSE(racesOf(schedules, InPlace::kSome).empty());
}

TEST(DirectLinks, AreRefusedWhereRanksMayMeet) {
  Shape shape;
  shape.size = 3;
  auto oneShot = buildAll(Algorithm::kOneShot, shape);
  EXPECT_TRUE(verify(oneShot, 1).ok);
  for (Schedule& schedule : oneShot) schedule.directInPlace = true;
  const Verdict verdict = verify(oneShot, 1);
  ASSERT_FALSE(verdict.ok);
  EXPECT_NE(verdict.problems[0].find("reads segment 0 of rank"), std::string::npos) << verdict.problems[0];
}

TEST(DirectLinks, LandOnlyWhereTheValueStays) {
  Shape shape;
  shape.size = 3;
  auto schedules = buildAll(Algorithm::kTwoShot, shape);
  schedules[0].steps[0].flags |= kDirectWrite;  // a contribution, which its receiver adds up
  const Verdict verdict = verify(schedules, schedules[0].depth);
  ASSERT_FALSE(verdict.ok);
  EXPECT_NE(verdict.problems[0].find("should land in its output"), std::string::npos) << verdict.problems[0];
}

TEST(Build, RefusesWhatIsNot) {
  Shape shape;
  shape.size = 4;
  try {
    build(Algorithm::kBruck, shape, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "all-reduce has no algorithm bruck; choose one of: ring, tree, oneshot, twoshot, halving, "
                 "hierarchical, doubling, twopass");
  }
  EXPECT_THROW(build(Algorithm::kRing, shape, 4), Error);
  EXPECT_THROW(build(Algorithm::kRing, shape, -1), Error);
  shape.groupOf = {0, 0, 1};
  EXPECT_THROW(build(Algorithm::kHierarchical, shape, 0), Error);
  shape.groupOf.clear();
  shape.collective = Collective::kBroadcast;
  shape.root = 4;
  EXPECT_THROW(build(Algorithm::kTree, shape, 0), Error);
  shape.root = 0;
  shape.size = 0;
  EXPECT_THROW(build(Algorithm::kTree, shape, 0), Error);
}

size_t bytesOf(const Schedule& schedule) {
  return schedule.steps.capacity() * sizeof(Step) + schedule.operands.capacity() * sizeof(Operand) +
         (schedule.inPeers.capacity() + schedule.outPeers.capacity()) * sizeof(int);
}

TEST(Build, TenThousandRanksStaySmall) {
  Shape shape;
  shape.size = 10000;
  for (int rank = 0; rank < shape.size; ++rank) shape.groupOf.push_back(rank / 8);
  for (Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kHierarchical}) {
    const Schedule schedule = build(algorithm, shape, 4711);
    EXPECT_LT(bytesOf(schedule), size_t{4} << 20) << nameOf(algorithm);
    EXPECT_FALSE(schedule.steps.empty());
  }
}

}  // namespace
}  // namespace tutti::proof
