// The v-variants' tables: for each rank a count of elements, and where its part begins in a buffer.
#pragma once
#include <cstddef>
#include <vector>

#include "base/types.h"

namespace tutti::api {

using Table = std::vector<size_t>;

// All of these throw Error(kInvalidArgument).
Table copyTable(const size_t* table, int size, const char* name, const char* argument);
// The sum of all counts.
size_t sum(const Table& counts, const char* name, const char* argument);
// Elements from the start of a buffer to the end of its last part: no more than a call can have. `side` is "send" or
// "recv".
size_t extent(const Table& counts, const Table& offsets, DataType type, const char* name, const char* side);
// No two ranks write to the same place in recv. Call extent() before: it knows that the ends of parts are numbers.
void checkApart(const Table& counts, const Table& offsets, const char* name);

// Where the parts begin when they lie one after the other.
Table offsetsOf(const Table& counts);

}  // namespace tutti::api
