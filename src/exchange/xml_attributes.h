// The attributes of one XML element, each taken once: what nobody took is kept as it is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <vector>

#include "topology/system.h"

namespace tutti::topology {

// The bounds of a number in a file, both included.
struct Bounds {
  int64_t least, most;
};

class XmlAttributes {
 public:
  explicit XmlAttributes(const pugi::xml_node& element) : element_(element) {}

  // nullopt where it is missing.
  std::optional<std::string> text(const char* name);
  // A whole number, decimal or, with 0x, hexadecimal; nullopt where it is missing or empty. Throws
  // Error(kInvalidArgument) for what is no number, or one out of bounds.
  std::optional<int64_t> number(const char* name, Bounds bounds);
  // Those that were not asked for.
  std::vector<std::pair<std::string, std::string>> rest() const;

 private:
  pugi::xml_node element_;
  std::vector<std::string> taken_;
};

// Bytes of a value from outside that a text of ours shows.
inline constexpr size_t kLongestShown = 64;

// An element as an error names it: "<pci busid="0000:3b:00.0">".
std::string describe(const pugi::xml_node& element);

// The text of an element, with all that is in it.
std::string textOf(const pugi::xml_node& element);

}  // namespace tutti::topology
