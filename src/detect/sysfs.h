// What the kernel tells in small files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tutti::detect {

// Paths begin with "/sys/" and are looked up below a root: "" for the machine at hand, a test's folder for another.
class Sysfs {
 public:
  explicit Sysfs(std::string root) : root_(std::move(root)) {}

  // The first line, without white space around it; nullopt where it cannot be read.
  std::optional<std::string> line(const std::string& path) const;
  // A whole number at the beginning of the first line: "200 Gb/sec (4X HDR)".
  std::optional<int64_t> number(const std::string& path) const;
  // The first bytes of a file; "" where it cannot be read.
  std::string bytes(const std::string& path, size_t most) const;
  // Names in a folder, ascending; none where there is no such folder.
  std::vector<std::string> names(const std::string& path) const;
  bool has(const std::string& path) const;
  // Where a link leads, "" where it is none.
  std::string target(const std::string& path) const;

 private:
  std::string root_;
};

}  // namespace tutti::detect
