// The text as a whole: is it XML, and no more than may be?
#include "topology/nccl_xml.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <pugixml.hpp>

#include "base/error.h"
#include "topology/nccl_xml_read.h"

namespace tutti::topology {
namespace {

[[noreturn]] void refuse(const std::string& source, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", source, why));
}

// By a walk that does not call itself: the depth is still unknown.
class Measure : public pugi::xml_tree_walker {
 public:
  bool for_each(pugi::xml_node& node) override {
    doctype |= node.type() == pugi::node_doctype;
    deep |= depth() >= kMostXmlDepth;
    return ++nodes <= kMostXmlElements && !deep && !doctype;
  }
  int nodes = 0;
  bool doctype = false, deep = false;
};

void requireModest(pugi::xml_document& document, const std::string& source) {
  Measure measure;
  document.traverse(measure);
  if (measure.doctype) refuse(source, "it has a DOCTYPE, which no description of a system needs: remove it");
  if (measure.deep) refuse(source, fmt::format("its elements are nested more than {} deep", kMostXmlDepth));
  if (measure.nodes > kMostXmlElements) refuse(source, fmt::format("it has more than {} elements", kMostXmlElements));
}

int lineAt(std::string_view text, ptrdiff_t offset) {
  const auto end = static_cast<size_t>(std::clamp<ptrdiff_t>(offset, 0, static_cast<ptrdiff_t>(text.size())));
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), '\n'));
}

}  // namespace

System readNcclXml(std::string_view text, const std::string& source) {
  if (text.size() > kMostXmlBytes)
    refuse(source, fmt::format("it has more than {} bytes, which no description of a system has", kMostXmlBytes));
  if (text.find('\0') != std::string_view::npos) refuse(source, "it has a zero byte, so it is no XML");
  pugi::xml_document document;
  const auto result =
      document.load_buffer(text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
  if (!result) refuse(source, fmt::format("no XML at line {}: {}", lineAt(text, result.offset), result.description()));
  requireModest(document, source);
  try {
    return readSystem(document);
  } catch (const Error& error) {
    refuse(source, error.what());
  }
}

System readNcclXmlFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostXmlBytes + 1, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(text.size())) && !file.eof())
    throw systemError(fmt::format("{} cannot be read", path), errno);
  text.resize(static_cast<size_t>(file.gcount()));
  return readNcclXml(text, path);
}

}  // namespace tutti::topology
