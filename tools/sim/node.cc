#include "sim/node.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>

#include "base/plain_text.h"
#include "catalog/known_systems.h"
#include "complain.h"
#include "detect/machine_at_hand.h"
#include "exchange/system_file.h"

namespace tutti::simtool {
namespace {

constexpr size_t kLongestName = 64;

Node nodeOfFile(const std::string& file) {
  return {topology::readSystemFile(file), plainText(std::filesystem::path(file).filename().string(), kLongestName)};
}

Node thisMachine() {
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);  // where hwloc finds nothing, a remark says so
  return {detect::detectSystem(), "this machine"};
}

}  // namespace

Node nodeOf(const Options& options) {
  if (options.system) return {topology::makeKnownSystem(*options.system), *options.system};
  Node node = options.file ? nodeOfFile(*options.file) : thisMachine();
  for (const std::string& remark : node.system.remarks) tools::complain("tutti-sim: remark: {}\n", remark);
  return node;
}

}  // namespace tutti::simtool
