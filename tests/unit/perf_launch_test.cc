// What the programs show of the environment, and what they keep from the ranks that they start.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <string>
#include <string_view>

#include "launch/launcher_names.h"
#include "launch/launcher_table.h"
#include "perf/environment.h"
#include "perf/failure.h"
#include "perf/launch.h"
#include "settings/settings_table.h"

namespace tutti::perf {
namespace {

// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name), before_(variable(name)) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(PerfEnvironment, ShowsWhatTheLibraryKnowsAndNoSecrets) {
  EXPECT_EQ(shownOf({"HOME=/root", "https_proxy=http://me:word@proxy", "TUTTI_ID=aa", "TUTTI_ID_FILE=b",
                     "TUTTI_SECRET=cc", "TUTTI_SECERT=dd", "PATH=/bin", "RANK=1", "TUTTI_TRANSPORT=shm", "RANKS=7",
                     "SLURM_STEP_ID=0", "SLURM_JWT=ee", "OMPI_COMM_WORLD_RANK=1", "EMPTY", "TUTTI_ALGO=a=b"}),
            (Entries{"TUTTI_ID=(set, not shown)", "TUTTI_ID_FILE=b", "TUTTI_SECRET=(set, not shown)", "RANK=1",
                     "TUTTI_TRANSPORT=shm", "SLURM_STEP_ID=0", "OMPI_COMM_WORLD_RANK=1", "TUTTI_ALGO=a=b"}));
}

TEST(PerfEnvironment, RanksAreToldNothingOfOtherLaunchers) {
  Entries entries = {"PATH=/bin", "TUTTI_TRANSPORT=tcp", "TUTTI_JOIN_TIMEOUT_MS=5", "RANKS=7"};
  const Entries kept = entries;
  const auto add = [&entries](std::string_view name) {
    for (const char* value : {"=1", "="}) entries.push_back(std::string(name) + value);
  };
  for (const std::string_view name : control::kLauncherNames) add(name);
  for (const settings::Setting& setting : settings::kTable)
    if (setting.section == settings::For::kJoining && setting.name != std::string_view("TUTTI_JOIN_TIMEOUT_MS"))
      add(setting.name);
  add("TUTTI_PERF_PARENT");
  EXPECT_EQ(withoutLaunchers(entries), kept);
}

// Whatever a row of the library's table reads is among the names that are kept from the ranks.
TEST(PerfEnvironment, EveryColumnOfTheLaunchersIsKeptFromTheRanks) {
  const auto check = [](const auto& names) {
    for (const settings::Name name : names) {
      if (!name) continue;
      const Entries entries = {std::string(name.text()) + "=1"};
      EXPECT_TRUE(withoutLaunchers(entries).empty()) << name.text();
    }
  };
  for (const auto& row : control::launcherRows()) {
    check(std::array{row.rank, row.hosts});
    check(row.size);
    check(row.localRank);
    check(row.localSize);
    check(row.jobKeys);
    check(row.pair);
  }
}

TEST(PerfEnvironment, NobodySaysWhoWhereNothingThatCouldIsSet) {
  for (const Entries& entries : {Entries{}, Entries{"PATH=/bin", "TUTTI_TRANSPORT=tcp", "TUTTI_JOIN_TIMEOUT_MS=5"},
                                 Entries{"TUTTI_SECRET=x=", "TUTTI_ID_FILE=y"}, Entries{"TUTTI_RANK=", "WORLD_SIZE="},
                                 Entries{"RANK=1", "TUTTI_LAUNCHER=none"}})
    EXPECT_TRUE(nobodySaysWho(entries));
  for (const char* entry : {"RANK=1", "TUTTI_SIZE=2", "TUTTI_LAUNCHER=auto", "SLURM_PROCID=0"})
    EXPECT_FALSE(nobodySaysWho({"PATH=/bin", entry})) << entry;
}

TEST(PerfEnvironment, NamesWhatSaysWhereTheRanksOfOthersMeet) {
  EXPECT_EQ(placesOf({"PATH=/bin", "TUTTI_RANK=0", "TUTTI_ROOT=", "TUTTI_SECRET=x=", "TUTTI_JOIN_TIMEOUT_MS=5",
                      "TUTTI_ID_FILE=y", "RANK=1"}),
            "TUTTI_SECRET, TUTTI_ID_FILE");
  EXPECT_EQ(placesOf({"PATH=/bin", "TUTTI_LAUNCHER=auto"}), "");
}

TEST(PerfEnvironment, RanksAreNotToldAgainWhatIsNoSetting) {
  EXPECT_EQ(withoutStrange({"PATH=/bin", "TUTTI_TRANPORT=shm", "TUTTI_ALGO=ring", "TUTTI_TEST_PATIENCE=3"}),
            (Entries{"PATH=/bin", "TUTTI_ALGO=ring", "TUTTI_TEST_PATIENCE=3"}));
  const Entries good = {"TUTTI_DEBUG=trace", "TUTTI_DEBUG=INFO", "TUTTI_DEBUG="};
  EXPECT_EQ(withoutStrange(good), good);
  EXPECT_EQ(withoutStrange({"TUTTI_DEBUG=loud"}), Entries{});
}

TEST(PerfEnvironment, EmptyIsNotSet) {
  const Variable empty("TUTTI_TESTS_MIN_BW", ""), other("NCCL_TESTS_MIN_BW", "");
  EXPECT_FALSE(variable("TUTTI_TESTS_MIN_BW").has_value());
  EXPECT_FALSE(minimumBandwidth().has_value());
}

TEST(PerfEnvironment, BandwidthIsANumberInItsRange) {
  for (const char* name : {"TUTTI_TESTS_MIN_BW", "NCCL_TESTS_MIN_BW"}) {
    for (const char* wrong : {"abc", "1x", "-1", "nan", "inf", "1e9", " "}) {
      const Variable one(name, wrong);
      EXPECT_THROW(minimumBandwidth(), UsageError) << name << "=" << wrong;
    }
    const Variable one(name, "1.5");
    EXPECT_EQ(minimumBandwidth(), 1.5);
  }
}

TEST(PerfLaunch, SaysHowAProcessEnded) {
  EXPECT_EQ(describeEnd(3 << 8), "exit status 3");
  EXPECT_EQ(describeEnd(9), "killed by signal 9 (Killed)");
}

TEST(PerfLaunch, IsNoChildOfWhoeverClaimsIt) {
  Options options;
  options.arguments = {"x"};
  {
    const Variable empty("TUTTI_PERF_PARENT", "");
    EXPECT_FALSE(followParent(options, "x"));
  }
  for (const char* wrong : {"1x", "abc", "-1", "999999999"}) {
    const Variable one("TUTTI_PERF_PARENT", wrong);
    EXPECT_THROW(followParent(options, "x"), UsageError) << wrong;
  }
  EXPECT_EQ(options.arguments.front(), "x");
}

}  // namespace
}  // namespace tutti::perf
