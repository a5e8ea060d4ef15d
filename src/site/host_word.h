// What one rank tells all others of its host: the order of the ranks there, and what the links carry.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "topology/paths.h"

namespace tutti::site {

struct HostWord {
  std::string why;         // the links are not known; empty: they are
  std::vector<int> order;  // ranks, as rings::HostLinks::order has them
  bool asNumbered = true;  // as there, like the rest
  topology::PathType along = topology::PathType::kLocal;
  double ringGBs = 0, pairGBs = 0, nicGBs = 0, networkGBs = 0;
  std::string source;  // "as detected"
  friend bool operator==(const HostWord&, const HostWord&) = default;
};

Bytes encode(const HostWord& word);
HostWord decodeHostWord(std::span<const std::byte> bytes);  // throws Error(kRemote) for bytes that are none

}  // namespace tutti::site
