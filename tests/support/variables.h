// Environment variables for a while.
#pragma once
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace tutti::test {

using Setting = std::pair<std::string, std::string>;  // its name and its value

// Settings for the communicators that are made while it lives.
class Settings {
 public:
  explicit Settings(std::vector<Setting> values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Settings() {
    for (const auto& [name, value] : values_) ::unsetenv(name.c_str());
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  std::vector<Setting> values_;
};

}  // namespace tutti::test
