// XML from outside, as a document: is it any, and no more than may be?
#pragma once
#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace tutti::topology {

// What a format may have. Of a file that describes a system, those of whole racks have some 100 kB.
inline constexpr size_t kMostXmlBytes = 4 << 20;
inline constexpr int kMostXmlDepth = 32;
inline constexpr int kMostXmlElements = 1 << 16;  // hwloc's of the largest machines have some 20,000

// `source` names the text in errors. Entities are not expanded, and nothing is loaded that the text names. Throws
// Error(kInvalidArgument), with the source and the place, for a text that is no XML, or is larger or deeper than any
// description of a system, or has a DOCTYPE, unless it is the plain one of hwloc.
pugi::xml_document parseXml(std::string_view text, const std::string& source);

// The content of a file, so far as a description of a system may be long, and a byte more. Throws Error(kSystem) where
// it cannot be read.
std::string readXmlFile(const std::string& path);

// Throws Error(kInvalidArgument), which begins with the source.
[[noreturn]] void refuseXml(const std::string& source, const std::string& why);

}  // namespace tutti::topology
