#include "drawing/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "drawing/style.h"

namespace tutti::drawing {
namespace {

constexpr double kLine = 13, kLetter = 6.4;

Node element(Node in, const char* name, const std::string& style) {
  Node made = in.append_child(name);
  if (!style.empty()) made.append_attribute("class").set_value(style.c_str());
  return made;
}

void set(Node node, const char* name, double value) { node.append_attribute(name).set_value(number(value).c_str()); }

}  // namespace

std::string number(double value) { return fmt::format("{:g}", std::round(value * 10) / 10); }

Node group(Node in, const std::string& style, const std::string& tip) {
  Node made = element(in, "g", style);
  if (!tip.empty()) made.append_child("title").text().set(tip.c_str());
  return made;
}

void rectangle(Node in, const Box& box, const std::string& style, double radius) {
  Node made = element(in, "rect", style);
  set(made, "x", box.x);
  set(made, "y", box.y);
  set(made, "width", box.width);
  set(made, "height", box.height);
  set(made, "rx", radius);
}

Node line(Node in, const std::string& path, const std::string& style) {
  Node made = element(in, "path", style);
  made.append_attribute("d").set_value(path.c_str());
  return made;
}

void write(Node in, Point at, const std::string& text, const std::string& style, const char* anchor) {
  Node made = element(in, "text", style);
  set(made, "x", at.x);
  set(made, "y", at.y);
  if (std::string_view(anchor) != "start") made.append_attribute("text-anchor").set_value(anchor);
  made.text().set(text.c_str());
}

void writeLines(Node in, const Box& box, const std::vector<std::string>& lines) {
  double y = box.centre() - kLine * static_cast<double>(lines.size()) / 2 + 10;
  for (const std::string& each : lines) {
    write(in, {box.middle(), y}, each, &each == lines.data() ? "name" : "small", "middle");
    y += kLine;
  }
}

double lengthOf(const std::string& text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };  // a letter, in UTF-8
  return kLetter * static_cast<double>(std::ranges::count_if(text, begins));
}

double lengthOnWire(const std::string& text) { return lengthOf(text) * 0.88; }

void writeOnWire(Node in, Point middle, const std::string& text) {
  const double length = lengthOnWire(text) + 4;
  rectangle(in, {middle.x - length / 2, middle.y - 6, length, 12}, "plate", 2);
  write(in, {middle.x, middle.y + 3.5}, text, "on", "middle");
}

pugi::xml_document newDocument(const std::string& title) {
  pugi::xml_document document;
  Node svg = document.append_child("svg");
  svg.append_attribute("xmlns").set_value("http://www.w3.org/2000/svg");
  svg.append_attribute("font-family").set_value("DejaVu Sans, Verdana, Helvetica, Arial, sans-serif");
  svg.append_attribute("font-size").set_value("11");
  svg.append_child("title").text().set(title.c_str());
  svg.append_child("style").text().set(kStyle);
  element(svg, "rect", "page").append_attribute("width").set_value("100%");
  svg.child("rect").append_attribute("height").set_value("100%");
  return document;
}

std::string finished(pugi::xml_document& document, double width, double height) {
  Node svg = document.child("svg");
  set(svg, "width", width);
  set(svg, "height", height);
  svg.append_attribute("viewBox").set_value(fmt::format("0 0 {} {}", number(width), number(height)).c_str());
  std::ostringstream text;
  document.save(text, " ");
  return text.str();
}

}  // namespace tutti::drawing
