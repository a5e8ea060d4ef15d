// By which rules TCP links send.
#include "net/congestion.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "base/error.h"
#include "process/fd.h"

namespace tutti {
namespace {

UniqueFd tcpSocket() { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

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
  const std::string after = congestionOf(socket.get());
  EXPECT_TRUE(after == "cubic" || after == "reno") << after;
}

TEST(Congestion, AnyOtherStays) {
  const UniqueFd socket = tcpSocket();
  setCongestion(socket.get(), "reno");
  setCongestion(socket.get(), checkedCongestion(""));
  EXPECT_EQ(congestionOf(socket.get()), "reno");
}

}  // namespace
}  // namespace tutti
