// Processes of another user, as which a test attacks. Needs root.
#pragma once
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::test {

inline constexpr uid_t kNobody = 65534;

inline bool mayBeAnotherUser() noexcept { return ::geteuid() == 0; }

// Runs `body` as that user in a child, whose exit status it gives. The child has this thread alone: where others may
// hold locks, it makes only system calls.
template <class Body>
pid_t asUser(uid_t user, Body body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() != user && ::syscall(SYS_setuid, user) != 0) ::_exit(99);
    ::_exit(body());
  }
  return pid;
}
template <class Body>
pid_t asNobody(Body body) {
  return asUser(kNobody, body);
}

inline int statusOf(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tutti::test
