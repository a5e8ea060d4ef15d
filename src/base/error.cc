#include "base/error.h"

#include <new>
#include <system_error>

#include "base/limits.h"

namespace tutti {

const Error& outOfMemory = *new Error(ErrorCode::kSystem, "out of host memory");

ErrorCode codeOf(const std::exception& thrown) noexcept {
  const auto* error = dynamic_cast<const Error*>(&thrown);
  return error ? error->code() : ErrorCode::kSystem;
}

Error errorOf(const std::exception& thrown) noexcept {
  if (const auto* error = dynamic_cast<const Error*>(&thrown)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&thrown)) return outOfMemory;
  return errorOrOutOfMemory([&] { return Error(ErrorCode::kSystem, thrown.what()); });
}

void setText(std::string& into, std::string_view text) noexcept {
  try {
    into = text;
  } catch (const std::exception&) {
    into = kNoMemory;
  }
}

std::string errnoText(int errnoValue) { return std::generic_category().message(errnoValue) + limitBehind(errnoValue); }

Error systemError(const std::string& what, int errnoValue) {
  return Error(ErrorCode::kSystem, fmt::format("{}: {} (errno {})", what, errnoText(errnoValue), errnoValue));
}

}  // namespace tutti
