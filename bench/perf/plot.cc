#include "perf/plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "chart/chart.h"

namespace tutti::perf {
namespace {

using chart::Curve;

std::string lineNameOf(const Row& row) {
  std::string name = row.type;
  if (row.op != "none") name += " " + row.op;
  if (row.root >= 0) name += fmt::format(" root {}", row.root);
  return name;
}

void append(std::vector<Curve>& curves, const std::string& name, size_t colour, bool dashed, const Row& row,
            const Measurement& half) {
  const std::string full = name + (dashed ? ", in-place" : ", out-of-place");
  auto found = std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) { return curve.name == full; });
  if (found == curves.end()) found = curves.insert(curves.end(), {full, colour, dashed, {}});
  found->points.push_back({static_cast<double>(row.bytes), half.busGBs, half.microseconds});
}

std::vector<Curve> curvesOf(const std::vector<Row>& rows) {
  std::vector<Curve> curves;
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.bytes == 0) continue;  // has no place on a logarithmic axis
    const std::string name = lineNameOf(row);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    const auto colour = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (row.outOfPlace) append(curves, name, colour, false, row, *row.outOfPlace);
    if (row.inPlace) append(curves, name, colour, true, row, *row.inPlace);
  }
  return curves;
}

}  // namespace

std::string plotOf(const std::string& program, size_t ranks, const std::vector<Row>& rows) {
  return chart::draw(fmt::format("{}, {} rank{}", program, ranks, ranks == 1 ? "" : "s"), curvesOf(rows));
}

}  // namespace tutti::perf
