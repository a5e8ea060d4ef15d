// How a program of the tools ends: what it prints may still be on its way, so a full disk shows at the end, if not
// before.
#pragma once
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "complain.h"

namespace tutti::tools {

// The status that `run` returns, or, where not all of its output could be written, `trouble`, and why on standard
// error. `run` may throw fmt's std::system_error of standard output. Of a program named `name`; on its main thread,
// once.
template <class Run>
int flushed(const char* name, int trouble, Run run) {
  int status = trouble, error = 0;
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too long (ulimit -f) is an error like any other
  try {
    status = run();
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    error = errno;
  } catch (const std::system_error& failure) {
    error = failure.code().value();
  }
  complain("{}: cannot write to standard output{}{}\n", name, error ? ": " : "", error ? std::strerror(error) : "");
  return trouble;
}

}  // namespace tutti::tools
