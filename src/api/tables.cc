#include "api/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "api/check.h"

namespace tutti::api {

Table copyTable(const size_t* table, int size, const char* name, const char* argument) {
  checkPointer(table, name, argument);
  return {table, table + size};
}

Table offsetsOf(const Table& counts) {
  Table offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), size_t{0});
  return offsets;
}

size_t sum(const Table& counts, const char* name, const char* argument) {
  size_t total = 0;
  for (const size_t count : counts)
    if (__builtin_add_overflow(total, count, &total))
      invalid(name, fmt::format("{}: the sum of all does not fit into memory", argument));
  return total;
}

size_t extent(const Table& counts, const Table& offsets, DataType type, const char* name, const char* side) {
  const size_t most = PTRDIFF_MAX / sizeOf(type);
  size_t end = 0, last = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] == 0) continue;
    if (__builtin_add_overflow(offsets[r], counts[r], &last) || last > most)
      invalid(name,
              fmt::format("{}Counts[{}] is {}: that many elements from {}Displs[{}] ({}) on do not fit into memory",
                          side, r, counts[r], side, r, offsets[r]));
    if (last > comm::kMostElements)
      invalid(name, fmt::format("{}Displs[{}] is {}: with the {} elements of {}Counts[{}] from there on, they are more "
                                "than a call can have, which is {}",
                                side, r, offsets[r], counts[r], side, r, comm::kMostElements));
    end = std::max(end, last);
  }
  return end;
}

void checkApart(const Table& counts, const Table& offsets, const char* name) {
  Table order;
  for (size_t r = 0; r < counts.size(); ++r)
    if (counts[r] != 0) order.push_back(r);
  std::ranges::sort(order, {}, [&](size_t r) { return offsets[r]; });
  for (size_t i = 1; i < order.size(); ++i)
    if (const size_t a = order[i - 1], b = order[i]; offsets[a] + counts[a] > offsets[b])
      invalid(name, fmt::format("recvDispls: the parts of ranks {} and {} overlap in recv", a, b));
}

}  // namespace tutti::api
