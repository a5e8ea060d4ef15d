// The targets that are linked into the replaying program. CMake writes the list: one for each <target>_fuzz.cc.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti::fuzz {

struct Target {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

std::span<const Target> targets();

}  // namespace tutti::fuzz
