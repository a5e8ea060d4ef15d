#include "doctor/net/command.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "complain.h"
#include "doctor/net/job.h"
#include "doctor/net/local_ranks.h"
#include "doctor/net/table.h"
#include "launch/launcher.h"
#include "preflight/findings.h"
#include "settings/settings.h"

namespace tutti::doctor::net {
namespace {

constexpr int kWell = 0, kToMend = 1, kTrouble = 2;

struct Options {
  Wishes wishes;
  int ranks = 0;
  bool json = false;
};

// As the measuring programs ask: where there is no launcher, this process is alone.
control::LaunchInfo launch() {
  if (!settings::find("TUTTI_LAUNCHER")) ::setenv("TUTTI_LAUNCHER", "auto-or-none", 1);
  return control::readLaunch();
}

int print(const Outcome& outcome, const Options& options) {
  constexpr size_t kWidth = 100;
  const auto findings = preflight::findingsOf(outcome.reports, outcome.pairs);
  fmt::print("{}", options.json ? asJson(outcome, findings) : asText(outcome, findings, kWidth));
  return !outcome.broken.empty() ? kTrouble : preflight::needsMending(findings) ? kToMend : kWell;
}

// Of a job that does not come together this host's part can still be told.
int lookAround(const Options& options) {
  const control::LaunchInfo who = launch();
  if (who.size == 1) return print(lookHere(), options);
  try {
    const Outcome outcome = lookTogether(who, options.wishes);
    return who.rank == 0 ? print(outcome, options) : kWell;
  } catch (const Error& error) {
    const std::string why = fmt::format("the ranks do not meet: {}", error.what());
    tools::complain("tutti-doctor: {}\n", why);
    if (who.rank != 0) return kTrouble;
    Outcome here = lookHere();
    here.broken = why;
    return print(here, options);
  }
}

void describe(CLI::App& app, Options& options, int& each, int& patience) {
  app.add_option("--ranks", options.ranks, "Local processes to start, where no launcher has started any")
      ->check(CLI::Range(2, 1024));
  app.add_flag("--json", options.json, "For programs: docs/doctor.md has the keys");
  app.add_option("--milliseconds", each, "How long each bandwidth is measured, about")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  app.add_option("--timeout", patience, "Seconds that two ranks may take to connect, and be silent")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  app.add_option("--rounds", options.wishes.mostRounds, "How many other hosts each host meets, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 16384));
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  int each = static_cast<int>(options.wishes.each.count()), patience = 10;
  CLI::App app(
      "Looks at this host's interfaces, RDMA ports and limits; as ranks of a job, one or more on each host, under any "
      "launcher, also at what is between the hosts: whether they reach each other, how fast, over each transport.\n"
      "Ends with 0 when there is nothing to mend, 1 when there is, 2 when the ranks did not meet or one was lost.",
      "tutti-doctor net");
  describe(app, options, each, patience);
  try {
    app.parse(argc - 1, argv + 1);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kWell;
  } catch (const CLI::ParseError& error) {
    tools::complain("tutti-doctor: {}\nTry tutti-doctor net --help.\n", error.what());
    return kTrouble;
  }
  options.wishes.each = std::chrono::milliseconds(each);
  options.wishes.patience = std::chrono::seconds(patience);
  try {
    if (options.ranks > 0 && !settings::find("TUTTI_RANK")) return startLocally(options.ranks, argv, kTrouble);
    if (options.ranks > 0) endWithParent();
    return lookAround(options);
  } catch (const Error& error) {
    tools::complain("tutti-doctor: {}\n", error.what());
    return kTrouble;
  }
}

}  // namespace tutti::doctor::net
