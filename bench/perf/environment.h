// What the programs read of the environment themselves, what they show of it, and what they hand to the ranks that they
// start. Who a process is, and how the ranks meet, is read by the library alone.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::perf {

using Entries = std::vector<std::string>;  // "NAME=value"

// An empty variable counts as not set, as in the library.
std::optional<std::string> variable(const char* name);

// The process's whole environment.
Entries wholeEnvironment();

// Of `entries` those that the library knows, its own settings and the launchers' variables; values that are secret are
// masked. Everything else may hold anything, a proxy's password for one.
Entries shownOf(const Entries& entries);

// `entries` without whatever says who a process is and where the ranks meet.
Entries withoutLaunchers(const Entries& entries);
// Whether there is nothing of that, or TUTTI_LAUNCHER=none says that nothing of it counts: the process is on its own.
bool nobodySaysWho(const Entries& entries);
// `entries` without the TUTTI_* variables that are no settings: the starter has said so, its ranks need not.
Entries withoutStrangeNames(const Entries& entries);

// The bandwidth that the mean must reach, in GB/s: TUTTI_TESTS_MIN_BW or NCCL_TESTS_MIN_BW. Throws UsageError when it
// is no number.
std::optional<double> minimumBandwidth();

}  // namespace tutti::perf
