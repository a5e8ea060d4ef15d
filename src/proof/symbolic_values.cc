#include "proof/symbolic_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "proof/mix.h"

namespace tutti::proof {
namespace {

uint64_t stir(uint64_t x) noexcept { return mix(x + 0x9e3779b97f4a7c15u); }  // of 0 too it is a number like any

}  // namespace

SymbolicValues::SymbolicValues(int ranks)
    : ranks_(ranks), exact_(ranks <= kExactRanks), nodes_(1), table_(1024, kNothing) {
  for (int rank = 0; rank < ranks; ++rank) {
    const auto seed = static_cast<uint64_t>(rank);
    Node node;
    node.weight = exact_ ? Weight{1} << (2 * rank) : Weight{stir(2 * seed)} << 64 | stir(2 * seed + 1);
    nodes_.push_back(node);
    all_ += node.weight;
  }
}

SymbolicValues::Id SymbolicValues::reduce(std::span<const Id> sources) {
  return sources.size() == 1 ? sources[0] : intern(sources, false);
}

SymbolicValues::Id SymbolicValues::finalise(std::span<const Id> sources) { return intern(sources, true); }

uint64_t SymbolicValues::hashOf(std::span<const Id> children, bool finalised) const noexcept {
  uint64_t hash = finalised ? 1 : 0;
  for (Id child : children) hash = stir(hash ^ child);
  return hash;
}

bool SymbolicValues::same(Id id, std::span<const Id> children, bool finalised) const noexcept {
  const Node& node = nodes_[id];
  if (node.finalised != finalised || node.count != children.size()) return false;
  return std::equal(children.begin(), children.end(), children_.begin() + node.begin);
}

SymbolicValues::Id SymbolicValues::intern(std::span<const Id> children, bool finalised) {
  size_t place = hashOf(children, finalised) & (table_.size() - 1);
  for (; table_[place] != kNothing; place = (place + 1) & (table_.size() - 1)) {
    if (same(table_[place], children, finalised)) return table_[place];
  }
  const Id id = make(children, finalised);
  table_[place] = id;
  if (2 * nodes_.size() > table_.size()) grow();
  return id;
}

// Counters never overflow: a doubled rank shows as 2 here, and what is made of a doubled term stays doubled in spirit;
// the caller stops at the first.
SymbolicValues::Id SymbolicValues::make(std::span<const Id> children, bool finalised) {
  Node node;
  node.begin = static_cast<uint32_t>(children_.size());
  node.count = static_cast<uint32_t>(children.size());
  node.finalised = finalised;
  for (Id child : children) {
    node.weight += nodes_[child].weight;
    if (exact_ && (node.weight & kOddBits) != 0) break;
  }
  children_.insert(children_.end(), children.begin(), children.end());
  nodes_.push_back(node);
  return static_cast<Id>(nodes_.size() - 1);
}

void SymbolicValues::grow() {
  table_.assign(2 * table_.size(), kNothing);
  for (Id id = static_cast<Id>(ranks_) + 1; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    const std::span<const Id> children(children_.data() + node.begin, node.count);
    size_t place = hashOf(children, node.finalised) & (table_.size() - 1);
    while (table_[place] != kNothing) place = (place + 1) & (table_.size() - 1);
    table_[place] = id;
  }
}

std::string SymbolicValues::describe(Id id) const {
  if (id == kNothing) return "nothing";
  if (!exact_) return complete(id) ? "each rank once" : "another set of ranks than each once";
  std::string missing, twice;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto times = static_cast<int>(nodes_[id].weight >> (2 * rank) & 3);
    if (times == 0) missing += fmt::format(" {}", rank);
    if (times > 1) twice += fmt::format(" {}", rank);
  }
  std::string text = missing.empty() ? "each rank" : "no contribution of rank" + missing;
  if (!twice.empty()) text += ", a doubled contribution of rank" + twice;
  return text + (finalised(id) ? ", finalised" : "");
}

}  // namespace tutti::proof
