#include "exchange/nccl_xml.h"

#include "base/error.h"
#include "exchange/nccl_xml_read.h"
#include "exchange/xml_text.h"

namespace tutti::topology {

System readNcclXml(std::string_view text, const std::string& source) {
  const pugi::xml_document document = parseXml(text, source);
  try {
    System system = devicesOfNcclXml(document);
    connect(system);
    return system;
  } catch (const Error& error) {
    refuseXml(source, error.what());
  }
}

}  // namespace tutti::topology
