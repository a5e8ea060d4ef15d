// What tutti-topo and tutti-sim are both asked: an operation, sizes, and how many nodes of what.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/byte_size.h"
#include "base/command_name.h"
#include "base/error.h"
#include "catalog/known_systems.h"

namespace tutti::tools {

struct Asked {
  std::string op = "all_reduce", size = "64M";
  int nodes = 1, ranksPerNode = 0;
  bool sweep = false;
};

[[noreturn]] inline void refuse(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

inline void describe(CLI::App& app, Asked& asked) {
  app.add_option("--nodes", asked.nodes, "How many nodes of that system")->capture_default_str();
  app.add_option("--ranks-per-node", asked.ranksPerNode,
                 "Ranks of each node (default: one for each GPU, or for each memory node where there is none)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--op", asked.op, "The operation, as the measuring programs are called: all_reduce, alltoall, ...")
      ->capture_default_str();
  app.add_option("--size", asked.size, "Bytes as nccl-tests count them, with K, M or G")->capture_default_str();
  app.add_flag("--sweep", asked.sweep, "Also every eighth power of two from 1K up to --size");
}

// These throw Error(kInvalidArgument) that says what there is.

inline Collective collectiveOf(const Asked& asked) {
  std::string names;
  for (int number = 0; number < kCollectives; ++number) {
    const auto one = static_cast<Collective>(number);
    if (plainOf(one) != one || one == Collective::kSendRecv) continue;
    if (asked.op == commandName(one)) return one;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", commandName(one));
  }
  refuse(fmt::format("'{}' is no operation; choose one of: {}", asked.op, names));
}

// One, or with --sweep all up to it.
inline std::vector<size_t> sizesOf(const Asked& asked) {
  constexpr size_t kFirstOfSweep = 1 << 10, kSweepFactor = 8, kMost = size_t{1} << 44;
  const auto last = parseByteSize(asked.size);
  if (!last || *last < 1 || *last > kMost)
    refuse(fmt::format("invalid size '{}': a number of bytes up to 16384G, with K, M or G for powers of 1024",
                       asked.size));
  std::vector<size_t> sizes;
  if (asked.sweep)
    for (size_t bytes = kFirstOfSweep; bytes < *last; bytes *= kSweepFactor) sizes.push_back(bytes);
  sizes.push_back(*last);
  return sizes;
}

// A line for each.
inline std::string knownNames() {
  std::string text;
  for (const topology::KnownSystem& one : topology::knownSystems())
    text += fmt::format("  {:<26}{}\n", one.name, one.about);
  return text;
}

}  // namespace tutti::tools
