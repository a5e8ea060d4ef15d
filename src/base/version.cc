#include "base/version.h"

namespace tutti {

constinit const std::string_view kVersion = TUTTI_VERSION;

}  // namespace tutti
