// The launchers whose variables tutti understands: one row each. What the columns mean, and the rules of precedence,
// stand in launcher_table.cc.
#pragma once
#include <array>
#include <span>

#include "launch/launch.h"
#include "settings/settings.h"

namespace tutti::control {

// How the ranks of one launcher may run inside those of another, from the inside out.
enum class Level : uint8_t { kOwn, kFramework, kMpi, kSystem, kPods, kIndex };

struct LauncherRow {
  using Names = std::array<settings::Name, 3>;  // the first that is set counts
  const char* name;                             // for TUTTI_LAUNCHER
  Level level;
  settings::Name rank;
  Names size{}, localRank{}, localSize{};
  settings::Name hosts{};  // how many hosts there are
  std::array<settings::Name, 4> jobKeys{};
  bool exclusive = true;  // nobody else uses these names: half of the set is a mistake
  bool yields = false;    // a set of one rank gives way to the rows below
  // Beside rank and size: where the first is set, the second must be too.
  std::array<settings::Name, 2> pair{};
  // What the columns cannot say; null: nothing. `applies`: whether a set that is there counts. `read` reads rank and
  // size instead of the columns. `more` adds what else is told, or throws Error. `place` says where to meet, when it is
  // not one host and the user has not said; false: nothing is told.
  bool (*applies)(const settings::Environment&) = nullptr;
  void (*read)(const settings::Environment&, LaunchInfo&) = nullptr;
  void (*more)(const settings::Environment&, LaunchInfo&) = nullptr;
  bool (*place)(const settings::Environment&, LaunchInfo&) = nullptr;
};

std::span<const LauncherRow> launcherRows();

// MASTER_ADDR and MASTER_PORT, when both are set. The port itself belongs to the framework's own store.
bool placeOfMaster(const settings::Environment& environment, LaunchInfo& launch);

}  // namespace tutti::control
