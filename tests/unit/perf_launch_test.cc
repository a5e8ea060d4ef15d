// The programs must take for a launcher's what the library would read.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

#include "control/launcher_table.h"
#include "perf/launch.h"

namespace tutti::perf {
namespace {

using Variables = std::map<std::string, std::string>;

// Sets variables, and those of every launcher to nothing, for as long as it lives.
class Surroundings {
 public:
  explicit Surroundings(const Variables& variables) {
    for (const auto& row : control::launcherRows()) {
      hide(row.rank.text());
      for (const auto size : row.size) hide(size.text());
    }
    for (const char* name : {"TUTTI_LAUNCHER", "LOCAL_RANK", "MASTER_ADDR", "SLURM_STEP_ID"}) hide(name);
    for (const auto& [name, value] : variables) {
      hide(name);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Surroundings() {
    for (const auto& [name, value] : before_)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  void hide(const std::string& name) {
    if (name.empty()) return;
    const char* old = ::getenv(name.c_str());
    before_.emplace(name, old ? old : "");
    ::unsetenv(name.c_str());
  }
  Variables before_;
};

TEST(PerfLaunched, KnowsEveryRow) {
  const Variables more{{"LOCAL_RANK", "0"}, {"MASTER_ADDR", "h"}, {"SLURM_STEP_ID", "0"}};
  for (const auto& row : control::launcherRows()) {
    Variables variables = more;
    variables[row.rank.text()] = "0";
    variables[row.size.front().text()] = "1";
    const Surroundings surroundings(variables);
    EXPECT_TRUE(launched()) << row.name;
  }
}

TEST(PerfLaunched, IsNotDeceived) {
  for (const Variables& variables :
       {Variables{}, Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, Variables{{"RANK", "0"}},
        Variables{{"RANK", "0"}, {"WORLD_SIZE", "4"}}, Variables{{"JOB_COMPLETION_INDEX", "0"}}}) {
    const Surroundings surroundings(variables);
    EXPECT_FALSE(launched());
  }
}

}  // namespace
}  // namespace tutti::perf
