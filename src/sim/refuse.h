// What is asked for makes no sense, or takes too long.
#pragma once
#include <string>

#include "base/error.h"

namespace tutti::sim {

[[noreturn]] inline void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

}  // namespace tutti::sim
