// The elements of an SVG document. Texts may hold any character that a terminal can take.
#pragma once
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "drawing/box.h"

namespace tutti::drawing {

using Node = pugi::xml_node;

struct Point {
  double x = 0, y = 0;
};

// A number as the picture's attributes have them: tenths are enough.
std::string number(double value);

// What belongs together, with a text that shows where the pointer rests; "": none.
Node group(Node in, const std::string& style, const std::string& tip = "");

void rectangle(Node in, const Box& box, const std::string& style, double radius = 4);
Node line(Node in, const std::string& path, const std::string& style);
// `anchor` is start, middle or end.
void write(Node in, Point at, const std::string& text, const std::string& style = "", const char* anchor = "start");
// Lines in the middle of a box, the first one in bold.
void writeLines(Node in, const Box& box, const std::vector<std::string>& lines);

// How long a text of the common size is, about: its font is the reader's.
double lengthOf(const std::string& text);

// What is written on a wire, in smaller letters, with something behind it that hides the wire.
double lengthOnWire(const std::string& text);
void writeOnWire(Node in, Point middle, const std::string& text);

// An empty document: with its style sheet, for light and for dark readers.
pugi::xml_document newDocument(const std::string& title);
// Its size is known at the end.
std::string finished(pugi::xml_document& document, double width, double height);

}  // namespace tutti::drawing
