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

TEST(Congestion, OfTheSystemStaysUnlessItPacesByWhatItMeasures) {
  const UniqueFd socket = tcpSocket();
  const std::string before = congestionOf(socket.get());
  setCongestion(socket.get(), checkedCongestion(" "));
  const std::string after = congestionOf(socket.get());
  if (after.starts_with("bbr")) GTEST_SKIP() << "nothing else may be used here";
  if (!before.starts_with("bbr")) {
    EXPECT_EQ(after, before);
  }
}

}  // namespace
}  // namespace tutti
