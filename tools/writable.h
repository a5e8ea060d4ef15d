// Whether a file can be written, asked before the work that takes long.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tutti::tools {

// Leaves the file as it is, and none where there is none: the work may be cut. False: errno tells why.
inline bool isWritable(const std::string& path) {
  std::error_code ignored;
  const bool isNew = !std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  if (!std::ofstream(path, std::ios::binary | std::ios::app)) return false;
  if (isNew) std::filesystem::remove(path, ignored);
  return true;
}

}  // namespace tutti::tools
