#include "chart/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tutti::chart {
namespace {

constexpr double kPictureWidth = 1080, kPictureHeight = 820, kLeft = 90, kRight = 790;
constexpr size_t kLegendLines = 32;
// Okabe and Ito's colours and some of Tol's, which remain apart for the colour-blind.
constexpr std::array<const char*, 12> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
                                                  "#000000", "#882255", "#999933", "#332288", "#aa4499", "#808080"};

const char* colourOf(const Curve& curve) { return kColours[curve.colour % kColours.size()]; }

// A logarithmic axis from `low` to `high` (values), drawn between two places.
struct Axis {
  double low, high, from, to, base;

  double at(double value) const { return from + (std::log(value / low) / std::log(high / low)) * (to - from); }
  // Powers of the base, thinned so that at most about ten remain.
  std::vector<double> ticks() const {
    const int first = static_cast<int>(std::ceil(std::log(low) / std::log(base) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log(high) / std::log(base) + 1e-9));
    const int stride = std::max(1, (last - first) / 10 + 1);
    std::vector<double> values;
    for (int exponent = first; exponent <= last; exponent += stride) values.push_back(std::pow(base, exponent));
    return values;
  }
};

// The least whole powers of `base` around the positive values.
Axis axisFor(const std::vector<double>& values, double from, double to, double base) {
  double low = 0, high = 0;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value)) continue;
    low = low == 0 ? value : std::min(low, value);
    high = std::max(high, value);
  }
  if (low == 0) low = high = 1;
  low = std::pow(base, std::floor(std::log(low) / std::log(base) + 1e-9));
  high = std::pow(base, std::ceil(std::log(high) / std::log(base) - 1e-9));
  return {low, high > low ? high : low * base, from, to, base};
}

std::string sizeLabel(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return fmt::format("{:g} {}", bytes, unit);
}

std::string numberLabel(double value) { return fmt::format("{:g}", value); }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string textAt(double x, double y, const char* anchor, const std::string& text, const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

std::string lineFrom(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2, y2,
                     colour);
}

struct Panel {
  Axis x, y;
  double Point::*value;
  const char* label;
};

std::string frameOf(const Panel& panel, bool sizeLabels) {
  const double top = panel.y.to, bottom = panel.y.from;
  std::string svg;
  for (const double tick : panel.x.ticks()) {
    svg += lineFrom(panel.x.at(tick), top, panel.x.at(tick), bottom, "#e4e4e4");
    if (sizeLabels) svg += textAt(panel.x.at(tick), bottom + 20, "middle", sizeLabel(tick));
  }
  for (const double tick : panel.y.ticks()) {
    svg += lineFrom(kLeft, panel.y.at(tick), kRight, panel.y.at(tick), "#e4e4e4");
    svg += textAt(kLeft - 8, panel.y.at(tick) + 4, "end", numberLabel(tick));
  }
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#444\"/>\n", kLeft,
      top, kRight - kLeft, bottom - top);
  const double middle = (top + bottom) / 2;
  return svg + textAt(24, middle, "middle", panel.label, fmt::format(" transform=\"rotate(-90 24 {:.1f})\"", middle));
}

std::string curveOf(const Panel& panel, const Curve& curve) {
  std::string path, dots;
  for (const Point& point : curve.points) {
    const double value = point.*panel.value;
    if (!(value > 0) || !std::isfinite(value)) continue;
    const double x = panel.x.at(point.size), y = panel.y.at(value);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
    dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" stroke=\"{}\"/>\n", x, y,
                        curve.dashed ? "white" : colourOf(curve), colourOf(curve));
  }
  return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n{}", path,
                     colourOf(curve), curve.dashed ? " stroke-dasharray=\"6 4\"" : "", dots);
}

std::string legendOf(const std::vector<Curve>& curves) {
  std::string svg;
  double y = 80;
  for (size_t i = 0; i < curves.size() && i < kLegendLines; ++i, y += 22) {
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
        kRight + 20, y - 4, kRight + 56, y - 4, colourOf(curves[i]),
        curves[i].dashed ? " stroke-dasharray=\"6 4\"" : "");
    svg += textAt(kRight + 64, y, "start", curves[i].name);
  }
  if (curves.size() > kLegendLines) {
    svg += textAt(kRight + 64, y, "start", fmt::format("and {} more", curves.size() - kLegendLines));
  }
  return svg;
}

std::vector<double> valuesOf(const std::vector<Curve>& curves, double Point::*member) {
  std::vector<double> values;
  for (const Curve& one : curves) {
    for (const Point& point : one.points) values.push_back(point.*member);
  }
  return values;
}

}  // namespace

std::string draw(const std::string& title, const std::vector<Curve>& curves) {
  const Axis sizes = axisFor(valuesOf(curves, &Point::size), kLeft, kRight, 2);
  const Panel panels[] = {
      {sizes, axisFor(valuesOf(curves, &Point::bandwidth), 395, 60, 10), &Point::bandwidth, "bus bandwidth (GB/s)"},
      {sizes, axisFor(valuesOf(curves, &Point::time), 745, 420, 10), &Point::time, "time (µs)"}};
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kPictureWidth, kPictureHeight);
  svg += textAt((kLeft + kRight) / 2, 34, "middle", title, " font-size=\"18\"");
  for (const Panel& panel : panels) {
    svg += frameOf(panel, panel.value == &Point::time);
    for (const Curve& one : curves) svg += curveOf(panel, one);
  }
  svg += textAt((kLeft + kRight) / 2, 800, "middle", "size");
  return svg + legendOf(curves) + "</svg>\n";
}

}  // namespace tutti::chart
