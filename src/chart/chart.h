// Curves over the sizes of messages, as a picture.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace tutti::chart {

struct Point {
  double size, bandwidth, time;  // bytes, GB/s, microseconds
};

struct Curve {
  std::string name;
  size_t colour = 0;  // its number: curves of one have one colour
  bool dashed = false;
  std::vector<Point> points;
};

// An SVG document: bus bandwidth above, time below, both over size, all axes logarithmic.
std::string draw(const std::string& title, const std::vector<Curve>& curves);

}  // namespace tutti::chart
