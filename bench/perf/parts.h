// The uneven parts of the v-variants' programs.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace tutti::perf {

// Rank r's part: up to three elements less than `count`, at most all of them. So few that the numbers compare with
// those of the sibling whose parts are equal.
inline size_t partOf(size_t count, int rank) { return count - std::min(count, static_cast<size_t>(rank) % 4); }

// The tables: part r begins at r * count, so what is left out lies between the parts.
struct Parts {
  std::vector<size_t> counts, places;

  // Of the last call of this thread, as long as it is asked for the same: making them is no part of an operation.
  static const Parts& of(size_t count, int ranks) {
    thread_local Parts parts;
    thread_local size_t madeFor = 0;
    if (madeFor != count || parts.counts.size() != static_cast<size_t>(ranks)) parts = Parts(count, ranks);
    madeFor = count;
    return parts;
  }

 private:
  Parts() = default;
  Parts(size_t count, int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      counts.push_back(partOf(count, rank));
      places.push_back(static_cast<size_t>(rank) * count);
    }
  }
};

}  // namespace tutti::perf
