// What the watch of a call that stands still says of the answers that it gets.
#include "diagnose/stall_detector.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "fuzz/hearsay.h"
#include "team/team.h"
#include "topology/peer_info.h"

namespace tutti::comm {
namespace {

// Rank 1 answers as the test says.
class Answering : public fuzz::Hearsay {
 public:
  Answering() : Hearsay(7, 2) {}
  std::span<const std::byte> info(int) const override { return info_; }
  std::optional<control::Answer> lastAnswer(int) const override { return answer_; }
  void ask(int, std::span<const std::byte>) override { ++questions_; }
  int questions() const { return questions_; }
  void answer(Bytes body) { answer_ = {answer_ ? answer_->count + 1 : 1, false, std::move(body)}; }

 private:
  Bytes info_ = topology::encode(topology::describeSelf());
  std::optional<control::Answer> answer_;
  int questions_ = 0;
};

// This rank's call 0 on a line, which waits for rank 1.
class Waiting {
 public:
  explicit Waiting(const Call& call, std::chrono::milliseconds deadline = {}) : call_(call) {
    call_.root = 1;
    call_.timeout = deadline;
    auto plane = std::make_unique<Answering>();
    peer_ = plane.get();
    team_.emplace(std::move(plane), std::make_shared<Recorder>(), Config{});
    watch_.emplace(*team_, call_, 0, true);
  }
  void answer(CallLine asked, bool onlyReadies) {
    StateReply said;
    said.asked = {asked, 0, 0};
    said.counterpart = true;
    said.onlyReadies = onlyReadies;
    peer_->answer(encode(said));
  }
  int questions() const { return peer_->questions(); }
  // What the look says is wrong; empty: nothing.
  std::string look() {
    try {
      watch_->look(1, 0, false, [] { return std::string("rank 1"); });
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  Call call_;
  Answering* peer_ = nullptr;
  std::optional<Team> team_;
  std::optional<StallDetector> watch_;
};

Call persistentSend() {
  Call call;
  call.collective = Collective::kSendRecv;
  call.sends = call.onlyReadies = true;
  return call;
}

// Calls of different lines have the same numbers, and an answer may come when the call that asked has ended.
TEST(WatchOfACall, TakesNoAnswerThatIsOfAnotherCall) {
  Waiting send(persistentSend());
  EXPECT_EQ(send.look(), "");
  send.answer(CallLine::kReceive, false);
  EXPECT_EQ(send.look(), "");
  send.answer(CallLine::kSend, true);
  EXPECT_EQ(send.look(), "");
  send.answer(CallLine::kSend, false);
  EXPECT_NE(send.look().find("is persistent"), std::string::npos);
}

// How many questions come within 50 ms of an answer; nullopt where this thread was interrupted meanwhile, and the next
// one may have been due anyway.
std::optional<int> askedAfter(Waiting& send, CallLine answered) {
  constexpr std::chrono::milliseconds kLook(50), kDue(150);
  while (send.questions() == 0) EXPECT_EQ(send.look(), "");
  const auto begun = std::chrono::steady_clock::now();
  const int before = send.questions();
  send.answer(answered, true);
  EXPECT_EQ(send.look(), "");
  std::this_thread::sleep_for(kLook);
  EXPECT_EQ(send.look(), "");
  return std::chrono::steady_clock::now() - begun < kDue ? std::optional(send.questions() - before) : std::nullopt;
}

int askedAfterAnswerOf(CallLine answered) {
  for (;;) {
    Waiting send(persistentSend());
    EXPECT_EQ(send.look(), "");
    if (const auto asked = askedAfter(send, answered)) return *asked;
  }
}

// Two calls that stand still ask the same rank, which has one last answer: that of the other call covers this one's.
TEST(WatchOfACall, AsksAgainWhereAnAnswerWasCovered) {
  EXPECT_EQ(askedAfterAnswerOf(CallLine::kReceive), 1);
  EXPECT_EQ(askedAfterAnswerOf(CallLine::kSend), 0);
}

TEST(WatchOfACall, CountsNoAnswerThatIsOfAnotherCall) {
  Waiting reduction(Call{}, std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(reduction.look(), "");
  reduction.answer(CallLine::kReceive, false);
  EXPECT_EQ(reduction.look(), "");
  reduction.answer(CallLine::kCollective, false);
  const std::string said = reduction.look();
  EXPECT_NE(said.find("2 of 2 ranks have come"), std::string::npos) << said;
}

TEST(WatchOfACall, NamesTheRankWhoseAnswerCannotBeUnderstood) {
  auto plane = std::make_unique<Answering>();
  Answering& peer = *plane;
  Team team(std::move(plane), std::make_shared<Recorder>(), Config{});
  const Call call;
  StallDetector watch(team, call, 0, true);
  const auto look = [&] { watch.look(1, 0, false, [] { return std::string(); }); };
  look();
  peer.answer(Bytes(3));
  try {
    look();
    FAIL() << "three bytes are no answer";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRemote);
    EXPECT_EQ(std::string(error.what()).find("rank 1"), 0u) << error.what();
  }
}

}  // namespace
}  // namespace tutti::comm
