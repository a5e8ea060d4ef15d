// By which rules TCP links send.
#include "net/congestion.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "base/error.h"
#include "net/socket.h"
#include "process/fd.h"

namespace tutti {
namespace {

UniqueFd tcpSocket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

Address loopback(uint16_t port) {
  Address address;
  address.ip = {127, 0, 0, 1};
  address.port = port;
  return address;
}

TEST(Congestion, ThatIsNamedIsTaken) {
  const UniqueFd socket = tcpSocket();
  EXPECT_EQ(checkedCongestion(" reno\n"), "reno");  // whoever has TCP has it, and may use it
  setCongestion(socket.get(), "reno");
  EXPECT_EQ(congestionOf(socket.get()), "reno");
}

TEST(Congestion, ThatIsUnknownIsRefusedWithThoseThatAreThere) {
  for (const std::string name : {"renoo", "a name that is longer than any", "."}) {
    try {
      checkedCongestion(name);
      ADD_FAILURE() << "'" << name << "' was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_NE(std::string(error.what()).find("reno"), std::string::npos) << error.what();
    }
  }
}

TEST(Congestion, ThatPacesByWhatItMeasuresIsReplaced) {
  const UniqueFd socket = tcpSocket();
  setCongestion(socket.get(), "bbr");
  if (congestionOf(socket.get()) != "bbr") GTEST_SKIP() << "there is no BBR here, or it may not be used";
  setCongestion(socket.get(), checkedCongestion(" "));
  EXPECT_EQ(congestionOf(socket.get()), "bbr");
  chooseCongestion(socket.get());
  const std::string after = congestionOf(socket.get());
  EXPECT_TRUE(after == "cubic" || after == "reno") << after;
}

// Later it would be too late: the system paces on.
TEST(Congestion, IsChosenBeforeASocketIsConnected) {
  const UniqueFd plain = tcpSocket();
  if (!congestionOf(plain.get()).starts_with("bbr")) GTEST_SKIP() << "this system does not go by BBR";
  const UniqueFd listener = listenTcp(loopback(0), false);
  ASSERT_TRUE(listener);
  const UniqueFd dialled = dialTcp(loopback(portOf(listener.get())));
  ASSERT_TRUE(dialled);
  EXPECT_FALSE(congestionOf(dialled.get()).starts_with("bbr"));
  pollfd comes{listener.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&comes, 1, 10'000), 1);
  const UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  EXPECT_FALSE(congestionOf(accepted.get()).starts_with("bbr"));
}

TEST(Congestion, AnyOtherStays) {
  const UniqueFd socket = tcpSocket();
  setCongestion(socket.get(), "reno");
  chooseCongestion(socket.get());
  EXPECT_EQ(congestionOf(socket.get()), "reno");
}

}  // namespace
}  // namespace tutti
