// What the watch of a call that stands still says of the answers that it gets.
#include "diagnose/stall_detector.h"

#include <gtest/gtest.h>

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
  void answer(Bytes body) { answer_ = {answer_ ? answer_->count + 1 : 1, false, std::move(body)}; }

 private:
  Bytes info_ = topology::encode(topology::describeSelf());
  std::optional<control::Answer> answer_;
};

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
