#include "tune/series.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace tutti::tune {
namespace {

// Cells that differ in size alone, by size.
using Row = std::map<size_t, const Cell*>;

std::vector<Row> rowsOf(const Sweep& sweep) {
  std::map<std::tuple<Collective, std::string, int>, Row> rows;
  for (const Cell& cell : sweep.cells) rows[{cell.collective, cell.transport, cell.ranks}][cell.bytes] = &cell;
  std::vector<Row> all;
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  return all;
}

plan::Series seriesOf(const Row& row, schedule::Algorithm algorithm, const Model& model) {
  const Cell& first = *row.begin()->second;
  const double ranksPerCore = model.placeOf(first).ranksPerCore;
  plan::Series series{first.collective, algorithm, first.transport, first.ranks, ranksPerCore, {}, {}};
  for (const auto& [bytes, cell] : row)
    if (cell->times.contains(algorithm)) {
      series.bytes.push_back(bytes);
      series.us.push_back(model.withoutBarrier(*cell, algorithm));
    }
  return series;
}

}  // namespace

plan::Measurements measurementsOf(const Sweep& sweep, const Model& model) {
  std::vector<plan::Series> all;
  for (const Row& row : rowsOf(sweep))
    for (const schedule::Algorithm algorithm : alternatives(row.begin()->second->collective))
      if (plan::Series series = seriesOf(row, algorithm, model); !series.bytes.empty())
        all.push_back(std::move(series));
  return plan::Measurements(std::move(all));
}

}  // namespace tutti::tune
