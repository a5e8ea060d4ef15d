// --plot: a drawing of the table.
#pragma once
#include <string>
#include <vector>

#include "perf/table.h"

namespace tutti::perf {

// An SVG document: bus bandwidth above, time below, both over size, all axes logarithmic; a colour per type, operator
// and root, out-of-place as a full line and in-place as a dashed one.
std::string plotOf(const std::string& program, size_t ranks, const std::vector<Row>& rows);

}  // namespace tutti::perf
