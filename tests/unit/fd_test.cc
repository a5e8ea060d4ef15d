// Descriptors where a program has closed its standard streams.
#include "process/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>

namespace tutti {
namespace {

TEST(Descriptors, GetNoNumberOfAStandardStream) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
    const UniqueFd one(::open("/dev/null", O_RDONLY | O_CLOEXEC)), other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const bool above = one.get() > STDERR_FILENO && other.get() > STDERR_FILENO;
    const bool kept = ::fcntl(one.get(), F_GETFD) == FD_CLOEXEC && ::fcntl(STDIN_FILENO, F_GETFD) < 0;
    const UniqueFd none(::open("/nowhere/at/all", O_RDONLY));
    ::_exit(above && kept && !none && errno == ENOENT ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tutti
