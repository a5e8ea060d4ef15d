// A secret that is given beside a unique id: both are needed, and ranks that differ in it are told so at once.
#include <fcntl.h>
#include <poll.h>

#include <cstdio>
#include <filesystem>

#include "base/random.h"
#include "control/control_node.h"
#include "control_ranks.h"
#include "join/root.h"
#include "launch/rendezvous.h"
#include "net/handshake.h"
#include "net/socket.h"
#include "process/background_threads.h"
#include "process/private_file.h"

namespace tutti::control::test {
namespace {

using Secrets = std::vector<std::optional<std::string>>;

// How each rank's join ends, where they were handed one id in this way.
using HandOver = std::function<void(LaunchInfo&, const UniqueId&)>;
std::vector<Thrown> join(const HandOver& handOver, const Secrets& secrets) {
  const UniqueId id = openRoot({}, soon());
  const int size = static_cast<int>(secrets.size());
  std::vector<Thrown> ends(secrets.size());
  inThreads(size, [&](int r) {
    LaunchInfo launch;
    launch.rank = r;
    launch.size = size;
    launch.secret = secrets[size_t(r)];
    handOver(launch, id);
    ends[size_t(r)] = thrownBy([&] { joinPlane(requestFor(meetingPlace(launch, {}, soon()), r, size)); });
  });
  return ends;
}

void expectAllTold(const std::vector<Thrown>& ends, const std::vector<std::string>& words) {
  for (const Thrown& end : ends) {
    EXPECT_EQ(end.code, codeOf(ErrorCode::kInvalidUsage));
    for (const std::string& word : words) EXPECT_NE(end.text.find(word), std::string::npos) << word << "\n" << end.text;
    EXPECT_EQ(end.text.find("hidden"), std::string::npos) << end.text;
  }
}

void expectToCount(const HandOver& handOver) {
  for (const Thrown& end : join(handOver, {"hidden", "hidden", "hidden"})) EXPECT_EQ(end.text, "");
  for (const Thrown& end : join(handOver, {std::nullopt, std::nullopt})) EXPECT_EQ(end.text, "");
  const std::string what = "the ranks disagree on TUTTI_SECRET (or TUTTI_SECRET_FILE): rank ";
  expectAllTold(join(handOver, {"hidden", std::nullopt}),
                {what, "rank 0 (host ", ") has one, rank 1 (host ", ") has none. Set the same on every rank"});
  expectAllTold(join(handOver, {std::nullopt, "hidden"}), {what, "rank 1 (host ", ") has one, rank 0 (host "});
  expectAllTold(join(handOver, {"hidden", "hidden too"}), {what, ") has one, rank ", ") has another. Set"});
}

TEST(SecretBesideAnId, CountsWithTuttiId) {
  expectToCount([](LaunchInfo& launch, const UniqueId& id) { launch.id = id; });
}

TEST(SecretBesideAnId, CountsWithTuttiIdFile) {
  const std::string folder = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber());
  std::filesystem::create_directory(folder);
  expectToCount([&](LaunchInfo& launch, const UniqueId& id) {
    launch.idFile = folder + "/" + toHex(encode(id)).substr(8, 32);
    if (launch.rank == 0) writePrivateFile(AT_FDCWD, *launch.idFile, toHex(encode(id)));
  });
  std::filesystem::remove_all(folder);
}

TEST(SecretBesideAnId, IsToldAsAMarkThatDoesNotTellIt) {
  UniqueId id = anyRootPlace().id;
  EXPECT_EQ(provenBy(id), id.secret);
  id.beside.fill(std::byte{7});
  UniqueId other = id;
  other.beside[0] ^= std::byte{1};
  EXPECT_NE(provenBy(id), id.secret);
  EXPECT_NE(provenBy(id), id.beside);
  EXPECT_NE(provenBy(id), provenBy(other));
  EXPECT_NE(markOf(id.beside), markOf(other.beside));
  EXPECT_NE(markOf(id.beside), id.beside);
  other = id;
  other.secret[0] ^= std::byte{1};
  EXPECT_NE(provenBy(id), provenBy(other));
  EXPECT_EQ(decode(encode(id)).beside, Secret{}) << "the id does not carry it";
}

// Whether rank 1 lets in a caller who proves this.
bool letsIn(const Dial::Target& target, const Secret& secret) {
  HandshakeContext context = target.context;
  context.secret = secret;
  const UniqueFd fd = dialTcp(target.addresses.at(0));
  Handshake hello(Handshake::Role::kClient, context);
  for (pollfd ready{fd.get(), POLLOUT, 0};; ready.events = POLLIN) {
    EXPECT_EQ(::poll(&ready, 1, 20000), 1);
    const auto status = hello.advance(fd.get());
    if (status == Handshake::Status::kDone || status == Handshake::Status::kFailed)
      return status == Handshake::Status::kDone;
  }
}

TEST(SecretBesideAnId, IsNeededAtTheDoorOfARankAsWellAsTheId) {
  const UniqueId id = withSecret(openRoot({}, soon()), "hidden", 1);
  std::vector<std::shared_ptr<ControlNode>> members;
  for (int r = 0; r < 2; ++r) {
    members.push_back(std::make_shared<ControlNode>(requestFor(id, r, 2)));
    BackgroundThreads::instance().start(members.back());
  }
  for (const auto& member : members) ASSERT_TRUE(member->mailbox().awaitJoined(soon()));
  const Dial::Target target = members[0]->targetFor(1);
  EXPECT_TRUE(letsIn(target, members[0]->secret()));
  EXPECT_FALSE(letsIn(target, id.secret));
  EXPECT_FALSE(letsIn(target, id.beside));
  // What is made of the communicator needs both as well.
  EXPECT_EQ(members[0]->secret(), provenBy(id));
  for (const auto& member : members) member->leave();
}

}  // namespace
}  // namespace tutti::control::test
