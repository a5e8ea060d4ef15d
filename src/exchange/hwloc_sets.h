// hwloc's sets of processing units and memory nodes as text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::topology {

// Groups of 32 bits, the least first. Of "0x00000003", "0x1,,0x0" (a group that is left out is 0) and "0xf...f,0x1"
// (all bits above are set, which are not told here); nullopt for a text that is no set.
std::optional<std::vector<uint32_t>> parseHwlocSet(std::string_view text);

// The same as text for hwloc.
std::string hwlocSetOf(const std::vector<uint32_t>& groups);

// The members of a set, ascending; and the set that has these alone.
std::vector<int> membersOf(const std::vector<uint32_t>& groups);
std::vector<uint32_t> setOf(const std::vector<int>& members);

// As NCCL writes it: "00000000,000fffff", with as many groups as the set has; and back.
std::optional<std::vector<uint32_t>> parseAffinity(std::string_view text);
std::string affinityOf(const std::vector<uint32_t>& groups);

}  // namespace tutti::topology
