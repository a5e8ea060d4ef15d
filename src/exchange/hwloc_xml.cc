#include "exchange/hwloc_xml.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/plain_text.h"
#include "exchange/hwloc_io.h"
#include "exchange/hwloc_nodes.h"
#include "exchange/xml_attributes.h"
#include "topology/ports.h"
#include "topology/prune.h"

namespace tutti::topology {
namespace {

// hwloc 1 says none.
void requireKnown(const pugi::xml_node& root) {
  const std::string_view version = root.attribute("version").value();
  if (!version.empty() && !version.starts_with("2."))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the version \"{}\" of hwloc's format is unknown: write it as version 2 (lstopo "
                            "--export-xml-flags v2)",
                            plainText(version, kLongestShown)));
}

}  // namespace

System devicesOfHwlocXml(const pugi::xml_document& document) {
  const pugi::xml_node root = document.document_element();
  if (root.name() != std::string_view("topology"))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("it begins with {}: a description by hwloc begins with <topology>", describe(root)));
  requireKnown(root);
  System system;
  const HwlocNodes nodes = addHwlocNodes(root, system);
  addHwlocDevices(root, nodes, system);
  removeIdle(system);
  numberPorts(system);
  return system;
}

}  // namespace tutti::topology
