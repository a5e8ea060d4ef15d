// What a command line has that no option takes.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace tutti::perf {

// All of it in the order in which it was typed, and the option that was meant, where one is near: for a line that
// `app` has refused.
std::string extrasText(const CLI::App& app, int argc, const char* const* argv);

}  // namespace tutti::perf
