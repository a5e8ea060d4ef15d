#include "base/error.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tutti {

const Error& outOfMemory = *new Error(ErrorCode::kSystem, "out of host memory");

ErrorCode codeOf(const std::exception& thrown) noexcept {
  const auto* error = dynamic_cast<const Error*>(&thrown);
  return error ? error->code() : ErrorCode::kSystem;
}

void setText(std::string& into, std::string_view text) noexcept {
  try {
    into = text;
  } catch (const std::exception&) {
    into = kNoMemory;
  }
}

std::string errnoText(int errnoValue) {
  const std::string text = std::generic_category().message(errnoValue);
  rlimit limit{};
  if (errnoValue != EMFILE || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return text;
  // With the process: other ranks may get to read it.
  return fmt::format("{}, of which ulimit -n allows {} to process {}: raise it", text, uint64_t{limit.rlim_cur},
                     ::getpid());
}

Error systemError(const std::string& what, int errnoValue, std::source_location where) {
  return Error(ErrorCode::kSystem, fmt::format("{}: {} (errno {})", what, errnoText(errnoValue), errnoValue), where);
}

}  // namespace tutti
