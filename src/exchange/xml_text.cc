#include "exchange/xml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "base/error.h"

namespace tutti::topology {
namespace {

// Those that hwloc writes itself, which declare nothing.
bool isPlain(const pugi::xml_node& doctype) {
  const std::string_view said = doctype.value();
  return said == "topology SYSTEM \"hwloc2.dtd\"" || said == "topology SYSTEM \"hwloc.dtd\"";
}

// By a walk that does not call itself: the depth is still unknown.
class Measure : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node& node) override {
    doctype |= node.type() == pugi::node_doctype && !isPlain(node);
    deep |= depth() >= kMostXmlDepth;
    return ++nodes <= kMostXmlElements && !deep && !doctype;
  }
  int nodes = 0;
  bool doctype = false, deep = false;
};

void requireModest(pugi::xml_document& document, const std::string& source) {
  Measure measure;
  document.traverse(measure);
  if (measure.doctype) refuseXml(source, "it has a DOCTYPE, which no description of a system needs: remove it");
  if (measure.deep) refuseXml(source, fmt::format("its elements are nested more than {} deep", kMostXmlDepth));
  if (measure.nodes > kMostXmlElements)
    refuseXml(source, fmt::format("it has more than {} elements", kMostXmlElements));
}

int lineAt(std::string_view text, ptrdiff_t offset) {
  const auto end = static_cast<size_t>(std::clamp<ptrdiff_t>(offset, 0, static_cast<ptrdiff_t>(text.size())));
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), '\n'));
}

}  // namespace

void refuseXml(const std::string& source, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", source, why));
}

pugi::xml_document parseXml(std::string_view text, const std::string& source) {
  if (text.size() > kMostXmlBytes)
    refuseXml(source, fmt::format("it has more than {} bytes, which no description of a system has", kMostXmlBytes));
  if (text.find('\0') != std::string_view::npos) refuseXml(source, "it has a zero byte, so it is no XML");
  pugi::xml_document document;
  const auto result =
      document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!result)
    refuseXml(source, fmt::format("no XML at line {}: {}", lineAt(text, result.offset), result.description()));
  requireModest(document, source);
  return document;
}

std::string readXmlFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostXmlBytes + 1, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof())
    throw systemError(fmt::format("{} cannot be read", path), errno);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

}  // namespace tutti::topology
