// Gives a target every file of a folder, without a fuzzer: what was once found stays found.
//
//   tutti_fuzz_replay TARGET FILE_OR_FOLDER...
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/replay.h"

namespace {

using tutti::fuzz::Target;

// Nothing is open while a target runs: it counts what is.
std::vector<char> contentOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> filesOf(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  return files;
}

int replayAll(const Target& target, const std::filesystem::path& path) {
  const auto files = filesOf(path);
  for (const auto& file : files) {
    const auto bytes = contentOf(file);
    std::fprintf(stderr, "%s\n", file.c_str());  // the last one is the one that failed
    target.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  return static_cast<int>(files.size());
}

}  // namespace

int main(int argc, char** argv) {
  for (const Target& target : tutti::fuzz::targets()) {
    if (argc < 3 || std::strcmp(target.name, argv[1]) != 0) continue;
    target.run(nullptr, 0);
    int files = 0;
    for (int i = 2; i < argc; ++i) files += replayAll(target, argv[i]);
    std::printf("%s: %d files\n", target.name, files);
    return files > 0 ? 0 : 1;
  }
  std::fprintf(stderr, "usage: tutti_fuzz_replay TARGET FILE_OR_FOLDER...\n");
  return 2;
}
