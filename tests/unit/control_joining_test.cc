// A rank on its way into the tree, whose root and neighbours are not as they should be.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "control_ranks.h"
#include "fuzz/world.h"

namespace tutti::control::test {
namespace {

using fuzz::World;

Thrown howItEnds(World& world) {
  return thrownBy([&] { world.member().mailbox().awaitJoined(soon()); });
}

void expectTold(const Thrown& thrown, const std::string& word) {
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kRemote));
  EXPECT_NE(thrown.text.find(word), std::string::npos) << thrown.text;
}

// Nobody else would ever say whether all have come.
TEST(JoiningWithoutARoot, EndsAtOnceOnceARankHasItsPlace) {
  for (const int rank : {0, 1}) {
    World world(rank, 5);
    world.letCome(World::Stage::kPlaced);
    world.lines()[0].close();
    const Thrown thrown = howItEnds(world);
    expectTold(thrown, fmt::format("the root of the job, at local process {} of user ", ::getpid()));
    expectTold(thrown, "left while the ranks were joining: connection closed");
    world.end();
  }
}

// Who sits there need not be of this job: only that it refuses is taken from it.
TEST(JoiningAtATakenPlace, GetsNoPlaceFromTheRootThatIsThere) {
  JoinRequest request = requestFor(openRoot({}, soon()), 0, 1);
  request.id.taken = "cannot listen at port 7";
  const Thrown thrown = thrownBy([&] { joinPlane(request); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kSystem));
  EXPECT_EQ(thrown.text, request.id.taken);
}

// Rank 0 of three, which has met its children.
struct Meeting {
  Meeting() : world(0, 3) {
    world.letCome(World::Stage::kHasChildren);
    for (int r = 0; r < 3; ++r) records.push_back(world.record(r));
  }
  ~Meeting() { world.end(); }
  void tellDigest() { world.tellDigest(records); }
  void giveShares() {
    for (const int child : {1, 2}) world.giveShare(child, records[size_t(child)]);
  }
  World world;
  std::vector<Bytes> records;
};

TEST(JoiningWithoutARoot, GoesOnWhenAllHaveCome) {
  Meeting meeting;
  meeting.tellDigest();
  meeting.world.lines()[0].close();
  meeting.giveShares();
  EXPECT_TRUE(meeting.world.member().mailbox().awaitJoined(soon()));
}

TEST(RecordThatCannotBeRead, IsSaidToBeOfTheRankThatGaveIt) {
  for (const bool digestFirst : {false, true}) {
    Meeting meeting;
    meeting.records[2] = Bytes(1);
    if (digestFirst) meeting.tellDigest();
    meeting.giveShares();
    if (!digestFirst) meeting.tellDigest();
    expectTold(howItEnds(meeting.world), "rank 2 says of itself what cannot be understood");
  }
}

TEST(JoiningAtARootThatHangsUp, CallsItNowAndThen) {
  UniqueId id = anyRootPlace().id;
  const fuzz::Door door(rootUnixName(id.job));
  std::atomic<bool> over{false};
  std::thread rank([&] {
    thrownBy([&] { joinPlane(requestFor(id, 1, 2, Deadline::in(std::chrono::milliseconds(400)))); });
    over = true;
  });
  int calls = 0;
  while (!over) {
    auto root = door.open(rootContext(id), Deadline::in(std::chrono::milliseconds(50)));
    if (root && root->hear(Kind::kHello)) ++calls;
  }
  rank.join();
  EXPECT_GE(calls, 1);
  EXPECT_LT(calls, 100) << "without a pause there are thousands";
}

// That of an id which was handed over does not come again, and nobody else has its name.
TEST(JoiningAtARootThatHangsUp, EndsOnceNobodyListensThere) {
  const UniqueId id = anyRootPlace().id;
  auto door = std::make_unique<fuzz::Door>(rootUnixName(id.job));
  std::thread process([&] {
    { const auto withoutProof = door->open(rootContext(anyRootPlace().id), soon()); }
    door.reset();
  });
  expectTold(thrownBy([&] { joinPlane(requestFor(id, 1, 2)); }),
             "the root of the job hung up while this rank called it, and nobody is there now");
  process.join();
}

// Whatever a rank says of itself: its name, its process, its addresses, its info.
using Lie = void (*)(Record&);
class RecordOfARank : public testing::TestWithParam<std::pair<const char*, Lie>> {};
INSTANTIATE_TEST_SUITE_P(
    All, RecordOfARank,
    testing::Values(std::pair("host", Lie([](Record& record) { record.who.host += "x"; })),
                    std::pair("process", Lie([](Record& record) { ++record.who.pid; })),
                    std::pair("door", Lie([](Record& record) { ++record.who.endpoint.id; })),
                    std::pair("socket", Lie([](Record& record) { record.who.endpoint.unixName += "x"; })),
                    std::pair("address", Lie([](Record& record) { record.who.endpoint.addresses.emplace_back(); })),
                    std::pair("key", Lie([](Record& record) { record.who.endpoint.key[0] ^= std::byte{1}; })),
                    std::pair("card", Lie([](Record& record) { record.info.emplace_back(); }))),
    [](const auto& one) { return std::string(one.param.first); });

TEST_P(RecordOfARank, IsTakenAsTheRootHasHeardOfItOnly) {
  Meeting meeting;
  meeting.tellDigest();
  Record record = decodeRecord(meeting.records[2]);
  GetParam().second(record);
  meeting.records[2] = encode(record);
  meeting.giveShares();
  expectTold(howItEnds(meeting.world), "a rank in the tree has changed the table of all ranks");
}

}  // namespace
}  // namespace tutti::control::test
