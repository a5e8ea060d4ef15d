#include <stdlib.h>

#include <cstdio>
#include <map>
#include <thread>

#include "base/handshake.h"
#include "control/launcher.h"
#include "control_ranks.h"

namespace tutti::control::test {
namespace {

using Variables = std::map<std::string, std::string>;

// Sets variables for as long as it lives, after clearing all that the launcher looks at.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : {"TUTTI_RANK",
                             "TUTTI_SIZE",
                             "TUTTI_LOCAL_RANK",
                             "TUTTI_LOCAL_SIZE",
                             "TUTTI_ID",
                             "TUTTI_ID_FILE",
                             "TUTTI_ROOT",
                             "TUTTI_SECRET",
                             "TUTTI_SECRET_FILE",
                             "RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "MPI_LOCALRANKID",
                             "MPI_LOCALNRANKS",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_ID",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_NUM_NODES"})
      set(name, nullptr);
    for (const auto& [name, value] : variables) set(name.c_str(), value.c_str());
  }
  ~Environment() {
    for (const auto& [name, value] : before_)
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  void set(const char* name, const char* value) {
    const char* old = ::getenv(name);
    before_.emplace(name, old ? old : "");
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  std::map<std::string, std::string> before_;
};

struct Case {
  const char* name;
  Variables variables;
  int rank, size, localRank;
  std::string host;
  int port;
  std::string source;
};

class LauncherRow : public testing::TestWithParam<Case> {};

TEST_P(LauncherRow, IsRead) {
  const Case& c = GetParam();
  const Environment environment(c.variables);
  const Launch launch = readLaunch();
  EXPECT_EQ(launch.rank, c.rank);
  EXPECT_EQ(launch.size, c.size);
  EXPECT_EQ(launch.localRank, c.localRank);
  EXPECT_EQ(launch.rootHost.value_or(""), c.host);
  EXPECT_EQ(launch.rootPort, c.port);
  EXPECT_EQ(launch.source, c.source);
}

INSTANTIATE_TEST_SUITE_P(
    Table, LauncherRow,
    testing::Values(
        Case{"tutti",
             {{"TUTTI_RANK", "2"}, {"TUTTI_SIZE", "3"}, {"TUTTI_ROOT", "node1:4000"}},
             2,
             3,
             -1,
             "node1",
             4000,
             "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},
        Case{"tutti6",
             {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "1"}, {"TUTTI_ROOT", "[::1]:77"}},
             0,
             1,
             -1,
             "::1",
             77,
             "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},
        Case{"tuttiFirst",
             {{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "h:1"}, {"PMI_RANK", "5"}, {"PMI_SIZE", "6"}},
             1,
             2,
             -1,
             "h",
             1,
             "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},
        Case{"torchrun",
             {{"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}, {"RANK", "5"}, {"WORLD_SIZE", "8"}},
             5,
             8,
             1,
             "n0",
             31289,
             "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
        Case{"torchrunHighPort",
             {{"LOCAL_RANK", "0"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "65535"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}},
             0,
             2,
             0,
             "n0",
             2812,
             "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
        Case{"openmpi",
             {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
              {"OMPI_COMM_WORLD_RANK", "1"},
              {"OMPI_COMM_WORLD_SIZE", "4"}},
             1,
             4,
             1,
             "localhost",
             0,
             "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
        Case{"openmpiRoot",
             {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"TUTTI_ROOT", "n7:99"}},
             1,
             4,
             -1,
             "n7",
             99,
             "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE/TUTTI_ROOT"},
        Case{"pmi",
             {{"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}},
             0,
             2,
             0,
             "localhost",
             0,
             "PMI_RANK/PMI_SIZE"},
        Case{"slurm",
             {{"SLURM_LOCALID", "3"},
              {"SLURM_NTASKS", "4"},
              {"SLURM_PROCID", "3"},
              {"SLURM_STEP_ID", "0"},
              {"SLURM_STEP_NUM_NODES", "1"}},
             3,
             4,
             3,
             "localhost",
             0,
             "SLURM_PROCID/SLURM_NTASKS"}),
    [](const auto& given) { return given.param.name; });

struct Refused {
  const char* name;
  Variables variables;
  std::string says;
};

class LauncherRefusal : public testing::TestWithParam<Refused> {};

TEST_P(LauncherRefusal, SaysWhy) {
  const Environment environment(GetParam().variables);
  const Thrown thrown = thrownBy([] { readLaunch(); });
  ASSERT_NE(thrown.code, 0);
  EXPECT_NE(thrown.text.find(GetParam().says), std::string::npos) << thrown.text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, LauncherRefusal,
    testing::Values(
        Refused{"nothing", {}, "Looked for: TUTTI_RANK with TUTTI_SIZE"},
        Refused{"half", {{"TUTTI_RANK", "0"}}, "TUTTI_SIZE is not"},
        Refused{"tooHigh", {{"TUTTI_RANK", "4"}, {"TUTTI_SIZE", "4"}, {"TUTTI_ROOT", "h:1"}}, "ranks go from 0"},
        Refused{"notANumber", {{"TUTTI_RANK", "x"}, {"TUTTI_SIZE", "4"}}, "TUTTI_RANK=x"},
        Refused{"noPlace", {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}}, "where the ranks meet"},
        Refused{"twoPlaces",
                {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "h:1"}, {"TUTTI_ID_FILE", "f"}},
                "keep one"},
        Refused{"noPort", {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "host"}}, "host:port"},
        Refused{"badPort", {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "h:70000"}}, "1 to 65535"},
        Refused{"badId", {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ID", "abc"}}, "256 hex digits"},
        Refused{
            "podsOnly", {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}}, "LOCAL_RANK"},
        Refused{"noMaster", {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, "MASTER_ADDR"},
        Refused{"slurmShell", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}, "no launcher"},
        Refused{"manyHosts", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, "TUTTI_ROOT=host:port"},
        Refused{"twoSecrets",
                {{"TUTTI_RANK", "0"},
                 {"TUTTI_SIZE", "2"},
                 {"TUTTI_ROOT", "h:1"},
                 {"TUTTI_SECRET", "a"},
                 {"TUTTI_SECRET_FILE", "b"}},
                "keep one"}),
    [](const auto& given) { return given.param.name; });

TEST(Launcher, SecretsAreDigitsOrText) {
  EXPECT_EQ(secretFromText("000102030405060708090a0b0c0d0e0F")[15], std::byte{15});
  EXPECT_EQ(secretFromText("open sesame"), secretFromText("open sesame"));
  EXPECT_NE(secretFromText("open sesame"), secretFromText("open sesamE"));
}

void meetAndJoin(const Launch& pattern, int size) {
  inThreads(size, [&](int r) {
    Launch launch = pattern;
    launch.rank = r;
    launch.size = size;
    const UniqueId id = meetingPlace(launch, {}, soon());
    const auto plane = Plane::join(requestFor(id, r, size));
    EXPECT_EQ(toText(plane->card(size - 1)), "card of " + std::to_string(size - 1));
  });
}

uint16_t freePort() { return openRoot({}, Deadline::in(std::chrono::milliseconds(1))).addresses.at(0).port; }

TEST(MeetingPlace, RanksMeetAtAnAddressTwiceInARow) {
  Launch launch;
  launch.rootHost = "localhost";
  launch.rootPort = freePort();
  launch.secret = secretFromText("a secret");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the root that found the port has gone
  meetAndJoin(launch, 4);
  meetAndJoin(launch, 3);
}

TEST(MeetingPlace, RanksOfOneHostMeetAtAUnixSocket) {
  Launch launch;
  launch.rootHost = "localhost";
  launch.jobKey = "job " + std::to_string(randomNumber());
  meetAndJoin(launch, 4);
}

TEST(MeetingPlace, AnIdFileIsWaitedFor) {
  const std::string path = testing::TempDir() + "tutti-id-" + std::to_string(randomNumber());
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const std::string hex = toHex(encode(openRoot({}, soon())));
    FILE* file = std::fopen(path.c_str(), "w");
    std::fprintf(file, "%s\n", hex.c_str());
    std::fclose(file);
  });
  Launch launch;
  launch.idFile = path;
  meetAndJoin(launch, 2);
  writer.join();
  std::remove(path.c_str());
  launch.idFile = path + "-never";
  const Thrown thrown = thrownBy([&] { meetingPlace(launch, {}, Deadline::in(std::chrono::milliseconds(60))); });
  EXPECT_EQ(thrown.code, codeOf(ErrorCode::kTimeout));
}

}  // namespace
}  // namespace tutti::control::test
