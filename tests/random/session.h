// A session: ranks as threads, some communicators, and a number of drawn operations, each result compared.
#pragma once
#include <cstdint>
#include <string>

namespace tutti::faults {

// Ends the program with status 1, and a text that says how to see it again, on the first wrong byte or error. Returns
// a description of what it ran over.
std::string runSession(uint64_t seed, const std::string& variant, uint64_t operations);

}  // namespace tutti::faults
