// Unix sockets serve their own user only, at both ends. Needs root, to be another user.
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/root.h"
#include "control/socket.h"
#include "control_ranks.h"

namespace tutti::control::test {
namespace {

constexpr uid_t kNobody = 65534;

// Runs `body` as another user in a child, whose exit status it gives. Between fork() and the end only system calls.
template <class Body>
pid_t asNobody(Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::syscall(SYS_setuid, kNobody) != 0) ::_exit(99);
    ::_exit(body());
  }
  return pid;
}

int statusOf(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0: the listener hung up without a word.
int callAndListen(const std::string& name) {
  const UniqueFd fd = dialUnix(name);
  if (!fd) return 1;
  pollfd ready{fd.get(), POLLIN, 0};
  if (::poll(&ready, 1, 3000) != 1) return 2;
  char waste;
  return ::recv(fd.get(), &waste, 1, 0) <= 0 ? 0 : 3;
}

TEST(Users, AnotherUsersCallIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const UniqueId id = openRoot({}, soon());
  const std::string name = rootUnixName(id.job);
  EXPECT_EQ(statusOf(asNobody([&] { return callAndListen(name); })), 0);
  EXPECT_EQ(callAndListen(name), 2) << "the own user is waited for";
}

// Someone else sits at the name of a root that is not there.
TEST(Users, AnotherUsersListenerIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  UniqueId id = anyRootPlace().id;
  const std::string name = rootUnixName(id.job);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = asNobody([&] {
    const UniqueFd fd = listenUnix(name);
    if (!fd || ::write(ready[1], "x", 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char waste;
  EXPECT_EQ(::read(ready[0], &waste, 1), 1);
  const Thrown thrown =
      thrownBy([&] { Plane::join(requestFor(id, 1, 2, Deadline::in(std::chrono::milliseconds(200)))); });
  EXPECT_NE(thrown.text.find("another user"), std::string::npos) << thrown.text;
  ::kill(pid, SIGKILL);
  statusOf(pid);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace tutti::control::test
