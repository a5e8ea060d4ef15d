// Which tutti this is.
#pragma once
#include <string_view>

namespace tutti {

extern const std::string_view kVersion;  // "0.1.0": CMakeLists.txt is its home

}  // namespace tutti
