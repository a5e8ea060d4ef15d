// Where a device sits on the PCI bus, as text and as a number to compare.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti::topology {

// Of "0000:3b:00.0": the domain (1 to 8 digits, hexadecimal as all of it), bus, device and function, in one number;
// equal for the spellings of one device ("0000:3B:00.0"). nullopt for a text that is none.
std::optional<uint64_t> parseBusId(std::string_view text);

// "fffffff:ff:ff.0", by which NCCL writes that NVLinks lead to a fabric that a virtual machine does not show.
bool isHiddenFabric(std::string_view busId);

}  // namespace tutti::topology
