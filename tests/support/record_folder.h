// The end of a folder in which records were left.
#pragma once
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "support/patience.h"

namespace tutti::test {

// Removes it. The library's writer of records may just be making a file in it: then once more.
inline void removeRecordFolder(const std::filesystem::path& folder) {
  const auto latest = std::chrono::steady_clock::now() + longWait();
  std::error_code error;
  while (std::filesystem::remove_all(folder, error), error && std::chrono::steady_clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace tutti::test
