#include <net/if.h>

#include <cstdio>
#include <thread>

#include "base/handshake.h"
#include "control/launcher.h"
#include "control/network.h"
#include "control_ranks.h"

namespace tutti::control::test {
namespace {

void meetAndJoin(const Launch& pattern, int size) {
  inThreads(size, [&](int r) {
    Launch launch = pattern;
    launch.rank = r;
    launch.size = size;
    const UniqueId id = meetingPlace(launch, {}, soon());
    const auto plane = Plane::join(requestFor(id, r, size));
    EXPECT_EQ(toText(plane->card(size - 1)), "card of " + std::to_string(size - 1));
  });
}

uint16_t freePort() { return openRoot({}, Deadline::in(std::chrono::milliseconds(1))).addresses.at(0).port; }

TEST(MeetingPlace, RanksMeetAtAnAddressTwiceInARow) {
  Launch launch;
  launch.rootHost = "localhost";
  launch.rootPort = freePort();
  launch.secret = secretFromText("a secret");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the root that found the port has gone
  meetAndJoin(launch, 4);
  meetAndJoin(launch, 3);
}

TEST(MeetingPlace, RanksOfOneHostMeetAtAUnixSocket) {
  Launch launch;
  launch.oneHost = true;
  launch.jobKey = "job " + std::to_string(randomNumber());
  meetAndJoin(launch, 4);
}

TEST(MeetingPlace, RanksOfOneHostNeedAnAddressWithoutUnixSockets) {
  Network network;
  network.unixSockets = false;
  Launch launch;
  launch.oneHost = true;
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, network, soon()); });
  EXPECT_NE(thrown.text.find("TUTTI_ROOT"), std::string::npos) << thrown.text;
  launch.rootHost = "localhost";
  launch.rootPort = freePort();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  launch.rank = 0;
  const UniqueId id = meetingPlace(launch, network, soon());
  EXPECT_FALSE(id.addresses.empty());
}

TEST(MeetingPlace, AHostThatIsNotKnownIsAskedForUntilTheDeadline) {
  Launch launch;
  launch.rank = 1;
  launch.size = 2;
  launch.rootHost = "no-such-host.invalid";
  launch.rootPort = 4000;
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, Deadline::in(std::chrono::milliseconds(50))); });
  EXPECT_NE(thrown.text.find("cannot resolve no-such-host.invalid"), std::string::npos) << thrown.text;
}

TEST(NetworkAddresses, LinkLocalOnesAreNamedByTheInterfacesOfThisHost) {
  Address global, local;
  global.v6 = local.v6 = true;
  global.ip[0] = 0xfd;
  local.ip[0] = 0xfe;
  local.ip[1] = 0x80;
  local.ip[15] = 1;
  EXPECT_EQ(asSeenFromHere({global}), std::vector<Address>{global});
  local.scope = 0x7fffffff;  // no interface has this number
  const auto seen = asSeenFromHere({local, global});
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), global);
  for (size_t i = 0; i + 1 < seen.size(); ++i) {
    EXPECT_EQ(seen[i].ip, local.ip);
    char name[64] = {};
    EXPECT_NE(::if_indextoname(seen[i].scope, name), nullptr) << seen[i].scope;
  }
}

TEST(MeetingPlace, AnIdFileIsWaitedFor) {
  const std::string path = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber());
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const std::string hex = toHex(encode(openRoot({}, soon())));
    FILE* file = std::fopen(path.c_str(), "w");
    std::fprintf(file, "%s\n", hex.c_str());
    std::fclose(file);
  });
  Launch launch;
  launch.idFile = path;
  meetAndJoin(launch, 2);
  writer.join();
  std::remove(path.c_str());
  launch.idFile = path + "-never";
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, Deadline::in(std::chrono::milliseconds(60))); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
}

}  // namespace
}  // namespace tutti::control::test
