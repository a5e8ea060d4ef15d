#include "perf/plot.h"
namespace tutti::perf {
std::string plotOf(const std::string&, size_t, const std::vector<Row>&) { return ""; }
}  // namespace tutti::perf
