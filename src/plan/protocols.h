// Which protocols of GPUs may be chosen, as TUTTI_PROTOCOL says it for each operation.
#pragma once
#include <string>
#include <string_view>

#include "device/protocol.h"
#include "schedule/rules.h"

namespace tutti::plan {

using AllowedProtocols = schedule::AllowedOf<Protocol>;
using ProtocolRules = schedule::Rules<AllowedProtocols>;

// In any case of letters. Throw Error(kInvalidArgument), which lists the names.
AllowedProtocols parseAllowedProtocols(std::string_view list);
ProtocolRules parseProtocols(std::string_view text);
std::string textOf(const ProtocolRules& rules);

// Whether the plan may take it by itself: what is forced is taken, and over links that tear lines apart LL128 is wrong.
bool mayTake(Protocol protocol, AllowedProtocols allowed, bool linesMoveWhole) noexcept;
// The same, where one of them may be taken; otherwise all.
AllowedProtocols protocolsFor(AllowedProtocols allowed, bool linesMoveWhole) noexcept;

}  // namespace tutti::plan
