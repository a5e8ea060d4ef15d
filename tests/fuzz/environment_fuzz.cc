// The environment as a launcher or a user may set it. The input is a list of variables: a number says which, then comes
// the value, up to a zero byte.
#include "base/error.h"
#include "fuzz/input.h"
#include "launch/launcher.h"
#include "launch/launcher_table.h"
#include "settings/survey.h"

namespace tutti::fuzz {
namespace {

// Every variable that somebody reads, but for files and descriptors: what is in those is another target's business.
std::vector<std::string> allNames() {
  std::vector<std::string> names = {
      "MASTER_ADDR",   "MASTER_PORT",   "AZ_BATCH_MASTER_NODE", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE",
      "SLURM_STEP_ID", "SLURM_JOB_ID",  "SLURM_NODEID",         "FLUX_JOB_NNODES",     "HOROVOD_GLOO_RENDEZVOUS_ADDR",
      "TF_CONFIG",     "TUTTI_TRANPORT"};
  const auto add = [&](settings::Name name) {
    if (name) names.emplace_back(name.text());
  };
  for (const control::LauncherRow& row : control::launcherRows()) {
    add(row.rank);
    for (const auto* list : {&row.size, &row.localRank, &row.localSize})
      for (const settings::Name name : *list) add(name);
    add(row.hosts);
    for (const settings::Name name : row.jobKeys) add(name);
  }
  for (const settings::Setting& one : settings::kTable)
    if (one.type != settings::Type::kPath) names.emplace_back(one.name);
  return names;
}

settings::Environment environmentFrom(Input in) {
  static const std::vector<std::string> names = allNames();
  settings::Environment::Values values;
  while (!in.empty()) {
    std::string& value = values[names[in.take<uint8_t>() % names.size()]];
    value.clear();
    while (!in.empty()) {
      const char c = in.take<char>();
      if (c == '\0') break;
      value += c;
    }
  }
  return settings::Environment(std::move(values));
}

template <class Read>
void tryTo(Read read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kInvalidUsage);
  }
}

void readAll(const settings::Environment& environment) {
  tryTo([&] {
    const control::LaunchInfo launch = control::readLaunch(environment);
    require(launch.rank >= 0 && launch.rank < launch.size);
    require(launch.id || launch.idFile || launch.oneHost || launch.rootHost || launch.pmi >= 0 || launch.size == 1);
  });
  tryTo([&] {
    const int64_t size = environment.number("TUTTI_GROUP_SIZE");
    require(size >= 0 && size <= 1 << 20);
  });
  tryTo([&] { require(environment.milliseconds("TUTTI_JOIN_TIMEOUT_MS").count() > 0); });
  require(settings::describeAll(environment).size() == settings::kTable.size());
  for (const std::string& line : settings::strangeNames(environment)) require(!line.empty());
}

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::readAll(tutti::fuzz::environmentFrom({data, size}));
  return 0;
}
