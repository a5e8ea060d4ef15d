#include "exchange/system_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "exchange/hwloc_xml.h"
#include "exchange/nccl_xml_read.h"
#include "exchange/xml_attributes.h"
#include "exchange/xml_text.h"

namespace tutti::topology {
namespace {

System devicesByHwloc(const pugi::xml_document& document) {
  System system = devicesOfHwlocXml(document);
  if (const size_t gpus = devicesOf(system, DeviceKind::kGpu).size())
    system.remarks.push_back(fmt::format("hwloc tells no NVLinks: those of its {} GPUs are unknown", gpus));
  return system;
}

// The first element tells the formats apart.
System devicesIn(const pugi::xml_document& document) {
  const pugi::xml_node root = document.document_element();
  if (root.name() == std::string_view("system")) return devicesOfNcclXml(document);
  if (root.name() == std::string_view("topology")) return devicesByHwloc(document);
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("it begins with {}: a description of a system begins with <system>, as NCCL writes it, or "
                          "with <topology>, as hwloc does",
                          describe(root)));
}

}  // namespace

System readDevices(std::string_view text, const std::string& source) {
  const pugi::xml_document document = parseXml(text, source);
  try {
    return devicesIn(document);
  } catch (const Error& error) {
    refuseXml(source, error.what());
  }
}

System readSystem(std::string_view text, const std::string& source) {
  System system = readDevices(text, source);
  try {
    connect(system);
  } catch (const Error& error) {
    refuseXml(source, error.what());
  }
  return system;
}

System readDevicesFile(const std::string& path) { return readDevices(readXmlFile(path), path); }

System readSystemFile(const std::string& path) { return readSystem(readXmlFile(path), path); }

}  // namespace tutti::topology
