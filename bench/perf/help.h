// The text of --help, at most 80 columns wide.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace tutti::perf {

// Of all options by their groups, with examples at its end.
std::string helpOf(const CLI::App& app, const std::string& program);

// "all_reduce_perf of tutti 0.1.0"
std::string versionOf(const std::string& program);

}  // namespace tutti::perf
