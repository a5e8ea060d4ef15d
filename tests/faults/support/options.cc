#include "faults/support/options.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "faults/support/values.h"

namespace tutti::faults {
namespace {

[[noreturn]] void end(const char* usage, const std::string& complaint) {
  std::fprintf(complaint.empty() ? stdout : stderr, "%s%s%s\n", complaint.c_str(), complaint.empty() ? "" : "\n",
               usage);
  std::exit(complaint.empty() ? 0 : 2);
}

// From the clock and the process.
uint64_t freshSeed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return mix(static_cast<uint64_t>(now), static_cast<uint64_t>(::getpid())) % 1'000'000'000;
}

bool isName(const char* argument) { return std::strncmp(argument, "--", 2) == 0; }

}  // namespace

Options::Options(int argc, char** argv, const char* usage) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") end(usage, "");
    if (!isName(argv[i]) || std::strstr(usage, name.c_str()) == nullptr) end(usage, "what is " + name + "?");
    const bool hasValue = i + 1 < argc && !isName(argv[i + 1]);
    given_.emplace_back(name.substr(2), hasValue ? argv[++i] : "");
  }
}

bool Options::has(const std::string& name) const {
  for (const auto& [given, value] : given_)
    if (given == name) return true;
  return false;
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  for (const auto& [given, value] : given_)
    if (given == name) return value;
  return otherwise;
}

uint64_t Options::number(const std::string& name, uint64_t otherwise) const {
  const std::string value = text(name, "");
  if (value.empty()) return otherwise;
  char* rest = nullptr;
  const auto parsed = static_cast<uint64_t>(std::strtod(value.c_str(), &rest));  // 1e6 is a number too
  if (*rest == '\0' && value.find_first_of("eE.") != std::string::npos) return parsed;
  return std::strtoull(value.c_str(), nullptr, 10);
}

std::vector<std::string> itemsOf(const std::string& list) {
  std::vector<std::string> items;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');)
    if (!item.empty()) items.push_back(item);
  return items;
}

uint64_t Options::seed() const { return number("seed", has("short") ? 1 : freshSeed()); }

}  // namespace tutti::faults
