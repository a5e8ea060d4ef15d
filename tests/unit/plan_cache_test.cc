// The cache of plans: each choice made once, each question answered with the choice that is its own.
#include "team/plan_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace tutti::comm {
namespace {

class PlanCacheTest : public ::testing::Test {
 protected:
  // Answers by the bytes' tens: what a question of so many bytes gets.
  int& ask(const PlanQuestion& question) {
    return cache_.find(question, [&]() -> int& {
      ++choices_;
      return cache_.made(static_cast<int>(question.bytes / 10), [&] {
        ++makes_;
        return std::make_unique<int>(makes_);
      });
    });
  }

  PlanCache<int, int> cache_;
  int choices_ = 0, makes_ = 0;
};

TEST_F(PlanCacheTest, ChoosesOnceForAQuestionAndMakesOnceForAChoice) {
  const auto question = [](size_t bytes) { return PlanQuestion::of(Collective::kAllReduce, 0, bytes); };
  int& first = ask(question(11));
  EXPECT_EQ(&ask(question(11)), &first);
  EXPECT_EQ(choices_, 1);
  EXPECT_EQ(&ask(question(12)), &first);
  EXPECT_EQ(choices_, 2);
  EXPECT_EQ(makes_, 1);
  EXPECT_NE(&ask(question(21)), &first);
}

// More than the table of recent ones holds: some push others out, and none gets another's answer.
TEST_F(PlanCacheTest, GivesEveryQuestionItsOwnAnswerHoweverManyThereAre) {
  std::vector<int*> answers;
  const auto question = [](size_t i) { return PlanQuestion::of(Collective::kReduce, static_cast<int>(i % 7), 10 * i); };
  for (size_t i = 0; i < 2000; ++i) answers.push_back(&ask(question(i)));
  EXPECT_EQ(makes_, 2000);
  for (size_t i = 0; i < 2000; ++i) EXPECT_EQ(&ask(question(i)), answers[i]);
  EXPECT_EQ(makes_, 2000);
}

TEST(PlanQuestionTest, DiffersInEachOfItsParts) {
  const PlanQuestion one = PlanQuestion::of(Collective::kReduce, 1, 8);
  EXPECT_EQ(one, PlanQuestion::of(Collective::kReduce, 1, 8));
  EXPECT_NE(one, PlanQuestion::of(Collective::kBroadcast, 1, 8));
  EXPECT_NE(one, PlanQuestion::of(Collective::kReduce, ~1, 8));
  EXPECT_NE(one, PlanQuestion::of(Collective::kReduce, 1, 9));
  EXPECT_NE(one, PlanQuestion::of(Collective::kReduce, 1, 8, 0, true));
}

TEST(PlanMaking, IsTriedAgainAfterAnError) {
  PlanCache<int, int> cache;
  const auto fails = []() -> std::unique_ptr<int> { throw std::runtime_error("no"); };
  EXPECT_THROW(cache.made(1, fails), std::runtime_error);
  EXPECT_EQ(cache.made(1, [] { return std::make_unique<int>(5); }), 5);
}

}  // namespace
}  // namespace tutti::comm
