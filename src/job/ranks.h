// How many ranks there can be.
#pragma once
#include <optional>
#include <string>

namespace tutti::control {

// As many as schedules have room for (schedule::Operand). A control plane alone would carry more.
inline constexpr int kMaxRanks = 1 << 14;

// What is wrong with being that rank of so many; nullopt: nothing.
std::optional<std::string> wrongPlace(int rank, int size);

}  // namespace tutti::control
