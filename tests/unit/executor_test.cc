// How calls of a group reach the executors that run them.
#include "team/executor.h"

#include <gtest/gtest.h>

#include "fuzz/hearsay.h"
#include "topology/peer_info.h"

namespace tutti::comm {
namespace {

class Alone : public fuzz::Hearsay {
 public:
  Alone() : Hearsay(7, 1) {}
  std::span<const std::byte> info(int) const override { return info_; }

 private:
  Bytes info_ = topology::encode(topology::describeSelf());
};

// Writes down what it launches: the counts of the calls.
class Noting : public GroupLauncher {
 public:
  Noting(bool runs, std::vector<std::vector<size_t>>& launched) : runs_(runs), launched_(launched) {}
  bool runs() const noexcept override { return runs_; }
  void launch(std::span<PendingCall> calls) const override {
    auto& counts = launched_.emplace_back();
    for (const PendingCall& one : calls) counts.push_back(one.call.count);
  }

 private:
  const bool runs_;
  std::vector<std::vector<size_t>>& launched_;
};

class Idle final : public Executor {
 public:
  Idle(Team& team, const GroupLauncher& launcher) : Executor(team, launcher, {}) {}
  void run(const Call&) override {}
  void queue(PendingCall) override {}
  bool idle() const noexcept override { return true; }
  Stats stats() const override { return {}; }
  std::string foresee(const Call&) const override { return ""; }
  Rows describe() const override { return {}; }
};

PendingCall pending(Executor& executor, size_t count) {
  PendingCall one;
  one.executor = &executor;
  one.call.count = count;
  return one;
}

using Launched = std::vector<std::vector<size_t>>;

struct Executors : ::testing::Test {
  Team team{std::make_unique<Alone>(), std::make_shared<Recorder>(), Config{}};
  Launched launched;
  const Noting runs{true, launched}, queues{false, launched};
  Idle host{team, runs}, gpu{team, queues}, otherGpu{team, queues};
};

// What runs to its end may wait for what is only queued, and never the other way round.
TEST_F(Executors, LaunchWhatOnlyQueuesFirstAndKeepTheOrderOfEachKind) {
  std::vector<PendingCall> calls;
  calls.push_back(pending(host, 1));
  calls.push_back(pending(gpu, 2));
  calls.push_back(pending(host, 3));
  calls.push_back(pending(otherGpu, 4));
  launchGroup(calls);
  EXPECT_EQ(launched, (Launched{{2, 4}, {1, 3}}));
}

TEST_F(Executors, LaunchNothingForAGroupOfNothing) {
  launchGroup({});
  EXPECT_EQ(launched, Launched{});
}

}  // namespace
}  // namespace tutti::comm
