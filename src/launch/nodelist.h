// The two lists in which Slurm names nodes and counts tasks.
#pragma once
#include <string>
#include <vector>

namespace tutti::control {

// "n[1-3,07],gpu" is n1, n2, n3, n07, gpu. Throws Error(kInvalidArgument) that names `variable` and its value.
std::vector<std::string> expandNodes(const char* variable, const std::string& text);
// "4(x2),3" is 4, 4, 3. Throws the same.
std::vector<int> expandCounts(const char* variable, const std::string& text);

}  // namespace tutti::control
