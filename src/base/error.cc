#include "base/error.h"

#include <system_error>

namespace tutti {

Error systemError(const std::string& what, int errnoValue, std::source_location where) {
  return Error(ErrorCode::kSystem,
               fmt::format("{}: {} (errno {})", what, std::generic_category().message(errnoValue), errnoValue), where);
}

}  // namespace tutti
