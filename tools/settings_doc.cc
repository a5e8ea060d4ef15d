// Writes docs/settings.md, or with --check says whether it is what it should be.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "settings/settings_table.h"

namespace {

int usage() {
  fmt::print(stderr, "usage: settings_doc [--check] FILE\n");
  return 2;
}

int check(const char* path, const std::string& wanted) {
  std::ifstream file(path);
  std::stringstream found;
  found << file.rdbuf();
  if (found.str() == wanted) return 0;
  fmt::print(stderr, "{} is not what src/settings/settings_table.h says: build the target settings-doc\n", path);
  return 1;
}

int write(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  return file.flush() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const bool checks = count == 3 && std::string(arguments[1]) == "--check";
  if (!checks && (count != 2 || arguments[1][0] == '-')) return usage();
  const std::string text = tutti::settings::asMarkdown();
  return checks ? check(arguments[2], text) : write(arguments[1], text);
}
