// The command line of the fault programs: --name value and --flag, with defaults.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "support/patience.h"

namespace tutti::faults {

class Options {
 public:
  // Ends the program with the usage text for --help, and for anything that `usage` does not mention.
  Options(int argc, char** argv, const char* usage);
  bool has(const std::string& name) const;
  uint64_t number(const std::string& name, uint64_t otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  // --seed. Without: for --short always the same, so that a test answers for the change at hand; else a new one.
  uint64_t seed() const;

 private:
  std::vector<std::pair<std::string, std::string>> given_;
};

// The items of a comma list.
std::vector<std::string> itemsOf(const std::string& list);
using tutti::test::patience;

}  // namespace tutti::faults
