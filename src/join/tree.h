// The tree of ranks: numbered like a binary heap, so that every way through it is arithmetic.
#pragma once
#include <vector>

namespace tutti::control::tree {

constexpr int parentOf(int rank) noexcept { return rank == 0 ? -1 : (rank - 1) / 2; }
constexpr int childOf(int rank, int side) noexcept { return 2 * rank + 1 + side; }

// The child of `from` (or `from` itself) in whose subtree `to` lies; -1 when the way leads over from's parent.
constexpr int nextHop(int from, int to) noexcept {
  int below = to;
  while (to > from) {
    below = to;
    to = parentOf(to);
  }
  return to == from ? below : -1;
}

// The ranks between two.
inline std::vector<int> between(int from, int to) {
  const auto next = [to](int at) {
    const int below = nextHop(at, to);
    return below < 0 ? parentOf(at) : below;
  };
  std::vector<int> ranks;
  for (int at = from == to ? to : next(from); at != to; at = next(at)) ranks.push_back(at);
  return ranks;
}

inline std::vector<int> subtree(int rank, int size) {
  std::vector<int> ranks;
  for (int low = rank, width = 1; low < size; low = 2 * low + 1, width *= 2)
    for (int r = low; r < low + width && r < size; ++r) ranks.push_back(r);
  return ranks;
}

}  // namespace tutti::control::tree
