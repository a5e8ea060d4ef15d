// Draws curves that bench/compare/run has computed: a JSON of {"title", "curves": [{"name", "colour", "dashed",
// "points":
// [[bytes, GB/s, us], ...]}]} on stdin becomes an SVG document on stdout.
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chart/chart.h"

namespace {

tutti::chart::Curve curveOf(const nlohmann::json& described) {
  tutti::chart::Curve curve{described.at("name"), described.at("colour"), described.at("dashed"), {}};
  for (const auto& point : described.at("points")) curve.points.push_back({point.at(0), point.at(1), point.at(2)});
  return curve;
}

}  // namespace

int main() {
  try {
    const auto picture = nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(std::cin), {}));
    std::vector<tutti::chart::Curve> curves;
    for (const auto& described : picture.at("curves")) curves.push_back(curveOf(described));
    std::cout << tutti::chart::draw(picture.at("title"), curves) << std::flush;
    return std::cout ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compare_plot: %s\n", error.what());
    return 2;
  }
}
