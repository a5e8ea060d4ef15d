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
// Whether nothing says who the process is, or TUTTI_LAUNCHER=none says that nothing of that counts: it is on its own.
bool nobodySaysWho(const Entries& entries);
bool nobodyCounts(const Entries& entries);
// The names of what is set there to say where the ranks meet, "TUTTI_ROOT, TUTTI_SECRET": those of a process on its own
// meet by themselves, so it counts for nothing.
std::string placesOf(const Entries& entries);
// `entries` without the TUTTI_* variables of which the library has warned: the starter has said so, its ranks need not.
Entries withoutStrange(const Entries& entries);

// The bandwidth that the mean must reach, in GB/s: TUTTI_TESTS_MIN_BW or NCCL_TESTS_MIN_BW. Throws UsageError when it
// is no number.
std::optional<double> minimumBandwidth();

}  // namespace tutti::perf
