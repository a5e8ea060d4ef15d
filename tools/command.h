// How a program of the tools reads its command line, says what is wrong with it or with what it was asked for, and
// ends.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/version.h"
#include "complain.h"

namespace tutti::tools {

// Parses, then acts; 0, or `trouble` after an error on standard error. `app` has the program's name, and gets
// --version. On the main thread, inside of flushed().
template <class Act>
int runCommand(CLI::App& app, int argc, char** argv, int trouble, Act act) {
  app.set_version_flag("--version", std::string(kVersion), "Say which version this is");
  try {
    app.parse(argc, argv);
    act();
    return 0;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help("", CLI::AppFormatMode::All));
    return 0;
  } catch (const CLI::CallForVersion&) {
    fmt::print("{} of tutti {}\n", app.get_name(), kVersion);
    return 0;
  } catch (const CLI::ParseError& error) {
    complain("{}: {}\nTry --help.\n", app.get_name(), error.what());
  } catch (const Error& error) {
    complain("{}: {}\n", app.get_name(), error.what());
  }
  return trouble;
}

}  // namespace tutti::tools
