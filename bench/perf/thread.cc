#include "perf/thread.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/limits.h"

namespace tutti::perf {

void endWithoutThread(const std::system_error& error) noexcept {
  std::fprintf(stderr, "%s: cannot start a thread: %s%s\n", program_invocation_short_name,
               error.code().message().c_str(), limitOfTasks(error.code().value()).c_str());
  std::_Exit(EXIT_FAILURE);
}

}  // namespace tutti::perf
