// How many descriptors this process has open: a test that leaves as many as it found has lost none.
#pragma once
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace tutti::test {

inline size_t openFiles() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// What they are, for a test that fails. One that closes meanwhile has no name.
inline void printOpenFiles() {
  std::error_code gone;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd"))
    std::fprintf(stderr, "  %s %s\n", one.path().filename().c_str(), read_symlink(one.path(), gone).c_str());
}

}  // namespace tutti::test
