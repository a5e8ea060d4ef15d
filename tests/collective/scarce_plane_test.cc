// One allocation of the library's own threads fails, each in its turn: nobody waits for what will not come, and no
// thread stays.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "control/plane.h"
#include "join/root.h"
#include "support/lacking.h"
#include "support/patience.h"
#include "wire/dial.h"
#include "wire/heartbeat.h"

namespace tutti::control {
namespace {

using tutti::test::comesTrue;
using tutti::test::lackEach;
using tutti::test::longWait;
using tutti::test::threadsNow;
using Planes = std::vector<std::shared_ptr<Plane>>;

constexpr const char* kLongReason = "rank 0 gave up, for a reason that takes more room than there is in place";

std::shared_ptr<Root> openPlace() {
  RootPlace place = anyRootPlace();
  place.tcp = false;
  return startRoot(place, {}, Deadline::in(longWait()));
}

Planes beginPair(const UniqueId& id) {
  Planes planes;
  for (int rank = 0; rank < 2; ++rank) {
    JoinRequest request;
    request.id = id;
    request.rank = rank;
    request.size = 2;
    request.deadline = Deadline::in(longWait());
    request.heartbeat = std::chrono::milliseconds(0);
    planes.push_back(Plane::begin(request));
  }
  return planes;
}

Planes joinPair() {
  Planes planes = beginPair(openPlace()->id());
  for (const auto& plane : planes) plane->awaitJoined(Deadline::never());
  return planes;
}

TEST(ScarceMemoryOfPlanes, TheOthersHearOfAFailureAllTheSame) {
  Planes planes;
  lackEach([&] { planes = joinPair(); },
           [&] {
             planes[0]->fail({0, Stop::kError, ErrorCode::kRemote, kLongReason});
             EXPECT_TRUE(comesTrue([&] { return planes[1]->failed().load(); }));
           });
}

// Also after a failure, when a rank leaves without those that are below it.
TEST(ScarceMemoryOfPlanes, ARankThatLeavesIsGone) {
  for (const bool failed : {false, true}) {
    const int before = threadsNow();
    Planes planes;
    lackEach(
        [&] {
          planes = joinPair();
          if (failed) planes[0]->fail({0, Stop::kError, ErrorCode::kRemote, kLongReason});
          EXPECT_TRUE(comesTrue([&] { return planes[1]->failed() == failed; }));
          EXPECT_TRUE(comesTrue([&] { return threadsNow() <= before + 2; })) << "the root has gone";
        },
        [&] {
          planes.clear();
          EXPECT_TRUE(comesTrue([&] { return threadsNow() <= before; }));
        });
  }
}

// It joins, or hears before its deadline why it cannot.
bool joinsInTime(Plane& plane) try { return plane.awaitJoined(Deadline::never()); } catch (const Error& e) {
  EXPECT_NE(static_cast<int>(e.code()), static_cast<int>(ErrorCode::kTimeout)) << e.what();
  return false;
}

TEST(ScarceMemoryOfPlanes, NobodyWaitsForARankThatCannotJoin) {
  const int before = threadsNow();
  std::shared_ptr<Root> root;
  lackEach(
      [&] { root = openPlace(); },
      [&] {
        Planes planes = beginPair(root->id());
        const bool joined[] = {joinsInTime(*planes[0]), joinsInTime(*planes[1])};
        for (const size_t rank : {0, 1})
          if (!joined[rank]) planes[rank].reset();  // as whoever could not join does with it
        for (const size_t rank : {0, 1})
          EXPECT_TRUE(!joined[rank] || joined[1 - rank] || comesTrue([&] { return planes[rank]->failed().load(); }));
        planes.clear();
        root->halt();
        EXPECT_TRUE(comesTrue([&] { return threadsNow() <= before; }));
      });
}

// Of a line on which nothing comes.
TEST(ScarceMemoryOfPlanes, SilenceIsNoticedAllTheSame) {
  for (int given = 0;; ++given) {
    const auto root = openPlace();
    Reactor reactor;
    Heartbeat heartbeat(reactor, std::chrono::milliseconds(40));
    std::shared_ptr<Line> line;
    bool noticed = false;
    const auto watch = [&] {
      heartbeat.watch(line, [&](const std::string&) {
        noticed = true;
        reactor.stop();
      });
    };
    const auto dial = Dial::start(
        reactor, {rootContext(root->id()), {rootUnixName(root->id().job)}, {}},
        [&](std::shared_ptr<Line> won) {
          line = std::move(won);
          watch();
          tutti::test::ration = {given, tutti::test::Shortage::kOnce};
        },
        [](const std::string& why) { ADD_FAILURE() << why; });
    reactor.after(longWait(), [&] { reactor.stop(); });
    reactor.run([&](const std::string&) { watch(); });
    const bool lacked = std::exchange(tutti::test::ration, {}).lacked;
    EXPECT_TRUE(noticed) << given;
    root->halt();
    if (line) line->close();
    if (!lacked || !noticed) return;
  }
}

}  // namespace
}  // namespace tutti::control
