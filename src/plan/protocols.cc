#include "plan/protocols.h"

#include <algorithm>
#include <cctype>

namespace tutti::plan {
namespace {

bool isCalled(const ProtocolRow& row, std::string_view name) {
  return std::ranges::equal(row.name, name, {}, {}, [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
}

Protocol protocolByName(std::string_view name) {
  std::string names;
  for (const ProtocolRow& row : kProtocolRows) {
    if (isCalled(row, name)) return row.protocol;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("'{}' is no protocol; choose one of: {}", schedule::shown(name), names));
}

}  // namespace

AllowedProtocols parseAllowedProtocols(std::string_view list) {
  return schedule::readAllowed<Protocol>(list, protocolByName, kEveryProtocol);
}

ProtocolRules parseProtocols(std::string_view text) {
  return ProtocolRules::parse(text, [](std::string_view list, auto) { return parseAllowedProtocols(list); });
}

std::string textOf(const ProtocolRules& rules) {
  return rules.text([](AllowedProtocols allowed) { return schedule::textOf<Protocol>(allowed, kEveryProtocol); });
}

bool mayTake(Protocol protocol, AllowedProtocols allowed, bool linesMoveWhole) noexcept {
  if (const auto forced = allowed.forced()) return protocol == *forced;
  return allowed.has(protocol) && (linesMoveWhole || !rowOf(protocol).needsWholeLines);
}

AllowedProtocols protocolsFor(AllowedProtocols allowed, bool linesMoveWhole) noexcept {
  const auto may = [&](Protocol each) { return mayTake(each, allowed, linesMoveWhole); };
  return std::ranges::any_of(kEveryProtocol, may) ? allowed : AllowedProtocols();
}

}  // namespace tutti::plan
