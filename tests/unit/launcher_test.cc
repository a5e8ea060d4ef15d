#include "launch/launcher.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

#include "base/error.h"
#include "launch/launcher_table.h"
#include "launch/nodelist.h"

namespace tutti::control {
namespace {

using settings::Environment;
using Variables = std::map<std::string, std::string>;

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

// Sets as the launchers make them, of rank 5 of 8 on the second of two hosts, or of rank 1 of 4 on one.
const Variables kTorchrun{
    {"RANK", "5"},       {"WORLD_SIZE", "8"},      {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "4"},
    {"GROUP_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};
const Variables kAzurePytorch{{"RANK", "5"},      {"WORLD_SIZE", "8"},         {"LOCAL_RANK", "1"},
                              {"NODE_RANK", "1"}, {"MASTER_ADDR", "10.0.0.4"}, {"MASTER_PORT", "6105"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "5"},
                         {"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"OMPI_COMM_WORLD_NODE_RANK", "1"}};
const Variables kOpenMpiOne{{"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "prterun-7"},     {"PMIX_RANK", "1"}};
const Variables kMpich{
    {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}, {"PMI_FD", "9"}};
const Variables kMpichOne{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}};
const Variables kMvapich{{"MV2_COMM_WORLD_RANK", "1"},
                         {"MV2_COMM_WORLD_SIZE", "4"},
                         {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                         {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}};
const Variables kPals{{"PALS_RANKID", "5"}, {"PMI_SIZE", "8"}, {"PALS_LOCAL_RANKID", "1"}, {"PMI_FD", "9"}};
const Variables kFlux{
    {"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "4"}, {"FLUX_TASK_LOCAL_ID", "1"}, {"FLUX_JOB_NNODES", "1"}};
const Variables kJsm{{"JSM_NAMESPACE_RANK", "1"},
                     {"JSM_NAMESPACE_SIZE", "4"},
                     {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                     {"JSM_NAMESPACE_LOCAL_SIZE", "4"}};
const Variables kHorovod{{"HOROVOD_RANK", "1"},       {"HOROVOD_SIZE", "4"},       {"HOROVOD_LOCAL_RANK", "1"},
                         {"HOROVOD_LOCAL_SIZE", "4"}, {"HOROVOD_CROSS_RANK", "0"}, {"HOROVOD_CROSS_SIZE", "1"}};
const Variables kSlurm{{"SLURM_PROCID", "5"},
                       {"SLURM_NTASKS", "8"},
                       {"SLURM_STEP_NUM_TASKS", "8"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_NODEID", "1"},
                       {"SLURM_JOB_ID", "1000"},
                       {"SLURM_STEP_ID", "3"},
                       {"SLURM_STEP_NUM_NODES", "2"},
                       {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                       {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}};
// In the shell of a batch job: the whole allocation's numbers, and no step.
const Variables kBatchShell{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"},  {"SLURM_LOCALID", "0"},
                            {"SLURM_NODEID", "0"}, {"SLURM_JOB_ID", "10"}, {"SLURM_JOB_NODELIST", "gpu[07-08]"}};
const Variables kTensorflow{
    {"TF_CONFIG", R"({"cluster": {"chief": ["h0:2222"], "worker": ["h1:2223", "h1:2224"], "ps": ["h9:1"]},
                      "task": {"type": "worker", "index": 1}})"}};
const Variables kPlain{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "pod-0"}, {"MASTER_PORT", "23456"}};

const Variables kOwn{{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}};

struct Case {
  const char* name;
  Variables variables;
  const char* launcher;
  int rank, size, localRank, localSize;
  std::string place;  // "host:port", "one host", "pmi 9", "id", "file F"
  std::string source;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::string placeOf(const LaunchInfo& launch) {
  if (launch.id) return "id";
  if (launch.idFile) return "file " + *launch.idFile;
  if (launch.oneHost) return "one host";
  if (launch.pmi >= 0) return fmt::format("pmi {}", launch.pmi);
  return fmt::format("{}:{}", launch.rootHost.value_or("?"), launch.rootPort);
}

class LauncherRowTest : public testing::TestWithParam<Case> {};

TEST_P(LauncherRowTest, IsRead) {
  const Case& c = GetParam();
  const LaunchInfo launch = readLaunch(Environment(c.variables));
  EXPECT_EQ(launch.launcher, c.launcher);
  EXPECT_EQ(launch.rank, c.rank);
  EXPECT_EQ(launch.size, c.size);
  EXPECT_EQ(launch.localRank, c.localRank);
  EXPECT_EQ(launch.localSize, c.localSize);
  EXPECT_EQ(placeOf(launch), c.place);
  EXPECT_EQ(launch.source, c.source);
}

// clang-format off
const auto kCases = testing::Values(
    Case{"tutti", {{"TUTTI_RANK", "2"}, {"TUTTI_SIZE", "3"}, {"TUTTI_ROOT", "node1:4000"}},
         "tutti", 2, 3, -1, -1, "node1:4000", "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},
    Case{"tutti6", {{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "[fd00::1]:77"}},
         "tutti", 1, 2, -1, -1, "fd00::1:77", "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},
    Case{"tuttiLoopback", {{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "localhost:77"}},
         "tutti", 1, 2, -1, -1, "one host", "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},
    Case{"tuttiFile", {{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ID_FILE", "/f"}},
         "tutti", 1, 2, -1, -1, "file /f", "TUTTI_RANK/TUTTI_SIZE/TUTTI_ID_FILE"},
    Case{"tuttiOneHost",
         {{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_LOCAL_RANK", "1"}, {"TUTTI_LOCAL_SIZE", "2"}},
         "tutti", 1, 2, 1, 2, "one host", "TUTTI_RANK/TUTTI_SIZE"},
    Case{"tuttiAlone", {{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "1"}},
         "tutti", 0, 1, -1, -1, "one host", "TUTTI_RANK/TUTTI_SIZE"},
    Case{"tuttiBeatsAllOthers",
         Variables{{"TUTTI_RANK", "1"}, {"TUTTI_SIZE", "2"}, {"TUTTI_ROOT", "h:1"}} + kTorchrun + kOpenMpi + kMpich,
         "tutti", 1, 2, -1, -1, "h:1", "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT"},

    Case{"torchrun", kTorchrun, "torchrun", 5, 8, 1, 4, "node0:31289", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"torchrunHighPort", kTorchrun + Variables{{"MASTER_PORT", "65535"}},
         "torchrun", 5, 8, 1, 4, "node0:2812", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"torchrunOneHost", kTorchrun + Variables{{"LOCAL_WORLD_SIZE", "8"}, {"LOCAL_RANK", "5"}},
         "torchrun", 5, 8, 5, 8, "one host", "RANK/WORLD_SIZE"},
    Case{"torchrunRoot", Variables{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"TUTTI_ROOT", "n7:99"}},
         "torchrun", 5, 8, 1, -1, "n7:99", "RANK/WORLD_SIZE/TUTTI_ROOT"},
    Case{"torchrunInsideMpirun", kTorchrun + kOpenMpiOne, "torchrun", 5, 8, 1, 4, "node0:31289",
         "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"torchrunInsideSrun", kTorchrun + kSlurm + Variables{{"SLURM_PROCID", "0"}}, "torchrun", 5, 8, 1, 4,
         "node0:31289", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"azurePytorch", kAzurePytorch + Variables{{"AZUREML_RUN_ID", "x"}},
         "torchrun", 5, 8, 1, -1, "10.0.0.4:7894", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},

    Case{"horovod", kHorovod, "horovod", 1, 4, 1, 4, "one host", "HOROVOD_RANK/HOROVOD_SIZE"},
    Case{"horovodTwoHosts",  // the second host has one rank: HOROVOD_CROSS_SIZE of its neighbour misleads
         {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "3"}, {"HOROVOD_LOCAL_RANK", "1"}, {"HOROVOD_LOCAL_SIZE", "2"},
          {"HOROVOD_CROSS_SIZE", "1"}, {"TUTTI_ROOT", "h:5"}},
         "horovod", 1, 3, 1, 2, "h:5", "HOROVOD_RANK/HOROVOD_SIZE/TUTTI_ROOT"},
    Case{"horovodInsideMpirun", kHorovod + kOpenMpi, "horovod", 1, 4, 1, 4, "one host", "HOROVOD_RANK/HOROVOD_SIZE"},

    Case{"openmpi", kOpenMpiOne, "openmpi", 1, 4, 1, 4, "one host", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"openmpiRoot", kOpenMpi + Variables{{"TUTTI_ROOT", "n7:99"}},
         "openmpi", 5, 8, 1, 4, "n7:99", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE/TUTTI_ROOT"},
    Case{"openmpiMaster", kOpenMpi + Variables{{"MASTER_ADDR", "n7"}, {"MASTER_PORT", "29500"}},
         "openmpi", 5, 8, 1, 4, "n7:31289",
         "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"openmpiInsideSlurm", kOpenMpiOne + kSlurm, "openmpi", 1, 4, 1, 4, "one host",
         "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"openmpiInPods", kOpenMpiOne + kPlain, "openmpi", 1, 4, 1, 4, "one host",
         "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"azureMpi", kOpenMpi + Variables{{"AZ_BATCH_MASTER_NODE", "10.0.0.4:6000"}},
         "openmpi", 5, 8, 1, 4, "10.0.0.4:7789",
         "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE/AZ_BATCH_MASTER_NODE"},
    Case{"azureMpiOneNode", kOpenMpiOne + Variables{{"AZ_BATCHAI_MPI_MASTER_NODE", "localhost"}},
         "openmpi", 1, 4, 1, 4, "one host", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"azureMpiNoPort", kOpenMpi + Variables{{"AZ_BATCHAI_MPI_MASTER_NODE", "10.0.0.4"}},
         "openmpi", 5, 8, 1, 4, "10.0.0.4:7894",
         "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE/AZ_BATCHAI_MPI_MASTER_NODE"},

    Case{"mpich", kMpich, "mpich", 5, 8, 1, 4, "pmi 9", "PMI_RANK/PMI_SIZE/PMI_FD"},
    Case{"mpichOneHost", kMpichOne, "mpich", 1, 4, 1, 4, "one host", "PMI_RANK/PMI_SIZE"},
    Case{"mpichRoot", kMpich + Variables{{"TUTTI_ROOT", "h:5"}}, "mpich", 5, 8, 1, 4, "h:5",
         "PMI_RANK/PMI_SIZE/TUTTI_ROOT"},
    Case{"mvapich", kMvapich, "mvapich", 1, 4, 1, 4, "one host", "MV2_COMM_WORLD_RANK/MV2_COMM_WORLD_SIZE"},
    Case{"mvapichByHydra", kMvapich + kMpichOne, "mpich", 1, 4, 1, 4, "one host", "PMI_RANK/PMI_SIZE"},

    Case{"pals", kPals, "pals", 5, 8, 1, -1, "pmi 9", "PALS_RANKID/PMI_SIZE/PMI_FD"},
    Case{"palsWorldSize",
         {{"PALS_RANKID", "5"}, {"WORLD_SIZE", "8"}, {"PALS_LOCAL_RANKID", "1"}, {"MASTER_ADDR", "n"},
          {"MASTER_PORT", "2000"}},
         "pals", 5, 8, 1, -1, "n:3789", "PALS_RANKID/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"flux", kFlux, "flux", 1, 4, 1, 4, "one host", "FLUX_TASK_RANK/FLUX_JOB_SIZE"},
    Case{"fluxTwoHosts", kFlux + Variables{{"FLUX_JOB_NNODES", "2"}, {"PMI_FD", "9"}}, "flux", 1, 4, 1, -1, "pmi 9",
         "FLUX_TASK_RANK/FLUX_JOB_SIZE/PMI_FD"},
    Case{"jsm", kJsm, "jsm", 1, 4, 1, 4, "one host", "JSM_NAMESPACE_RANK/JSM_NAMESPACE_SIZE"},

    Case{"slurm", kSlurm, "slurm", 5, 8, 1, 4, "gpu07:21003",
         "SLURM_PROCID/SLURM_STEP_NUM_TASKS/SLURM_STEP_NODELIST/SLURM_JOB_ID"},
    Case{"slurmOld",
         {{"SLURM_LOCALID", "3"}, {"SLURM_NPROCS", "4"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_NODES", "1"}},
         "slurm", 3, 4, 3, 4, "one host", "SLURM_PROCID/SLURM_NPROCS"},
    Case{"slurmUneven", kSlurm + Variables{{"SLURM_STEP_TASKS_PER_NODE", "5,3"}}, "slurm", 5, 8, 1, 3, "gpu07:21003",
         "SLURM_PROCID/SLURM_STEP_NUM_TASKS/SLURM_STEP_NODELIST/SLURM_JOB_ID"},
    Case{"slurmStepOfTwoInAJobOfEight",
         kSlurm + Variables{{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_NODES", "1"},
                            {"SLURM_NODEID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}},
         "slurm", 1, 2, 1, 2, "one host", "SLURM_PROCID/SLURM_STEP_NUM_TASKS"},
    Case{"slurmShellYields",  // srun --pty bash, and in it a program that was told by hand
         Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}} + kPlain,
         "plain", 1, 2, -1, -1, "pod-0:25245", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"slurmOfOne", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}},
         "slurm", 0, 1, -1, -1, "one host", "SLURM_PROCID/SLURM_NTASKS"},
    Case{"slurmBatchShellDoesNotCount", kBatchShell + kPlain, "plain", 1, 2, -1, -1, "pod-0:25245",
         "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"slurmInteractiveStepDoesNotCount", kBatchShell + Variables{{"SLURM_STEP_ID", "4294967290"}} + kPlain,
         "plain", 1, 2, -1, -1, "pod-0:25245", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},

    Case{"pmix", {{"PMIX_RANK", "1"}, {"TUTTI_SIZE", "4"}, {"TUTTI_ROOT", "h:5"}, {"PMIX_NAMESPACE", "n"}},
         "pmix", 1, 4, -1, -1, "h:5", "PMIX_RANK/TUTTI_SIZE/TUTTI_ROOT"},

    Case{"tensorflow", kTensorflow, "tensorflow", 2, 3, 1, 2, "h0:4011", "TF_CONFIG"},
    Case{"tensorflowChief",
         {{"TF_CONFIG", R"({"cluster":{"master":["h0:1"],"worker":["h1:2"]},"task":{"type":"master","index":"0"}})"}},
         "tensorflow", 0, 2, 0, 1, "h0:1790", "TF_CONFIG"},
    Case{"tensorflowWorkersOnly",
         {{"TF_CONFIG", R"({"cluster":{"worker":["[fd00::1]:9","h1:2"]},"task":{"type":"worker","index":1}})"}},
         "tensorflow", 1, 2, 0, 1, "fd00::1:1798", "TF_CONFIG"},
    Case{"tensorflowOneHost",
         {{"TF_CONFIG", R"({"cluster":{"worker":["h:1","h:2"]},"task":{"type":"worker","index":1}})"}},
         "tensorflow", 1, 2, 1, 2, "one host", "TF_CONFIG"},
    Case{"tensorflowAlone", Variables{{"TF_CONFIG", "{}"}} + kPlain, "plain", 1, 2, -1, -1, "pod-0:25245",
         "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},

    Case{"plain", kPlain, "plain", 1, 2, -1, -1, "pod-0:25245", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"plainOnePerPod", kPlain + Variables{{"PET_NPROC_PER_NODE", "1"}}, "plain", 1, 2, -1, -1, "pod-0:25245",
         "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"plainForced", kPlain + Variables{{"PET_NPROC_PER_NODE", "8"}, {"TUTTI_LAUNCHER", "plain"}},
         "plain", 1, 2, -1, -1, "pod-0:25245", "RANK/WORLD_SIZE/MASTER_ADDR/MASTER_PORT"},
    Case{"kubernetes", {{"JOB_COMPLETION_INDEX", "1"}, {"TUTTI_SIZE", "3"}, {"TUTTI_ROOT", "job-0.svc:5"}},
         "kubernetes", 1, 3, -1, -1, "job-0.svc:5", "JOB_COMPLETION_INDEX/TUTTI_SIZE/TUTTI_ROOT"},

    Case{"forcedOuter", kTorchrun + kOpenMpiOne + Variables{{"TUTTI_LAUNCHER", "openmpi"}},
         "openmpi", 1, 4, 1, 4, "one host", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"forcedAmongContradictions", kOpenMpiOne + kMpich + Variables{{"TUTTI_LAUNCHER", "openmpi"}},
         "openmpi", 1, 4, 1, 4, "one host", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"forcedAuto", kOpenMpiOne + Variables{{"TUTTI_LAUNCHER", "auto"}},
         "openmpi", 1, 4, 1, 4, "one host", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"},
    Case{"none", kOwn + kTorchrun + kOpenMpi + Variables{{"PMI_RANK", "x"}, {"TUTTI_LAUNCHER", "none"}},
         "none", 0, 1, -1, -1, "one host", ""},
    Case{"autoOrNoneOfNothing", {{"TUTTI_LAUNCHER", "auto-or-none"}}, "none", 0, 1, -1, -1, "one host", ""},
    Case{"autoOrNoneInABatchShell", kBatchShell + Variables{{"TUTTI_LAUNCHER", "auto-or-none"}},
         "none", 0, 1, -1, -1, "one host", ""},
    Case{"autoOrNoneOfALauncher", kOpenMpiOne + Variables{{"TUTTI_LAUNCHER", "auto-or-none"}},
         "openmpi", 1, 4, 1, 4, "one host", "OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE"});

// clang-format on
INSTANTIATE_TEST_SUITE_P(Table, LauncherRowTest, kCases, [](const auto& given) { return given.param.name; });

struct Refused {
  const char* name;
  Variables variables;
  std::vector<std::string> says;
};

void PrintTo(const Refused& one, std::ostream* out) { *out << one.name; }

class LauncherRefusal : public testing::TestWithParam<Refused> {};

TEST_P(LauncherRefusal, SaysWhy) {
  try {
    readLaunch(Environment(GetParam().variables));
    FAIL() << "nothing was refused";
  } catch (const Error& e) {
    for (const std::string& text : GetParam().says)
      EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

const auto kRefusals = testing::Values(
    Refused{"nothing", {}, {"Looked for: TUTTI_RANK with TUTTI_SIZE; RANK with WORLD_SIZE", "TF_CONFIG"}},
    Refused{"half", {{"TUTTI_RANK", "0"}}, {"TUTTI_RANK=0 is set but TUTTI_SIZE is not"}},
    Refused{"otherHalf", {{"TUTTI_SIZE", "4"}}, {"TUTTI_SIZE=4 is set but TUTTI_RANK is not"}},
    Refused{"halfAboveAWholeSet", kOpenMpiOne + Variables{{"TUTTI_RANK", "1"}}, {"TUTTI_RANK=1", "TUTTI_SIZE is not"}},
    Refused{"halfOpenMpi", {{"OMPI_COMM_WORLD_RANK", "1"}}, {"OMPI_COMM_WORLD_SIZE is not"}},
    Refused{"halfPlain", {{"RANK", "1"}}, {"RANK=1 is set but WORLD_SIZE is not"}},
    Refused{"pmixWithoutSize", {{"PMIX_RANK", "1"}}, {"PMIX_RANK=1 is set but TUTTI_SIZE is not"}},
    Refused{"indexWithoutSize", {{"JOB_COMPLETION_INDEX", "1"}}, {"JOB_COMPLETION_INDEX=1", "TUTTI_SIZE is not"}},
    Refused{"sizeOfMany", {{"WORLD_SIZE", "2"}}, {"WORLD_SIZE=2 is set but RANK is not: set both, or neither"}},
    Refused{"sizeOfManyAndTheirPlace",
            {{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}},
            {"WORLD_SIZE=2 is set but RANK is not"}},
    Refused{"halfOfPmi", {{"PMI_SIZE", "2"}}, {"PMI_SIZE=2 is set but PMI_RANK is not"}},
    Refused{"halfPals", {{"PALS_RANKID", "1"}}, {"PALS_RANKID=1 is set but PMI_SIZE is not"}},
    Refused{"palsAndRank", {{"PALS_RANKID", "0"}, {"RANK", "1"}}, {"PALS_RANKID=0 is set but PMI_SIZE is not"}},
    Refused{"stepWithoutNumber",
            {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}},
            {"SLURM_STEP_NUM_TASKS=2 is set but SLURM_STEP_ID is not"}},
    Refused{"stepWithoutRank",
            {{"SLURM_STEP_ID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}},
            {"SLURM_STEP_NUM_TASKS=2 is set but SLURM_PROCID is not"}},
    Refused{"halfUnderAutoOrNone",
            {{"RANK", "1"}, {"TUTTI_LAUNCHER", "auto-or-none"}},
            {"RANK=1 is set but WORLD_SIZE is not", "TUTTI_LAUNCHER=none starts this process alone"}},
    Refused{"wholeUnderAutoOrNone",
            {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"TUTTI_LAUNCHER", "auto-or-none"}},
            {"rank 1 of 2", "MASTER_ADDR and MASTER_PORT"}},
    Refused{"tooHigh",
            {{"TUTTI_RANK", "4"}, {"TUTTI_SIZE", "4"}},
            {"TUTTI_RANK=4", "TUTTI_SIZE=4", "ranks go from 0 to 3"}},
    Refused{"localTooHigh",
            kOpenMpi + Variables{{"OMPI_COMM_WORLD_LOCAL_RANK", "4"}},
            {"OMPI_COMM_WORLD_LOCAL_RANK=4", "4 of 8 ranks", "local ranks go from 0 to 3"}},
    Refused{"moreHereThanThereAre",
            kOpenMpi + Variables{{"OMPI_COMM_WORLD_LOCAL_SIZE", "9"}},
            {"OMPI_COMM_WORLD_LOCAL_SIZE=9", "8 ranks in all"}},
    Refused{"notANumber", {{"TUTTI_RANK", "x"}, {"TUTTI_SIZE", "4"}}, {"TUTTI_RANK=x"}},
    Refused{"negative", {{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}, {"PMI_RANK=-1"}},
    Refused{"noSize", {{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}, {"PMI_SIZE=0"}},
    Refused{"noPlace", kOwn, {"tutti says who this is (rank 0 of 2)", "TUTTI_ROOT=host:port"}},
    Refused{"twoPlaces", kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_ID_FILE", "f"}}, {"keep one"}},
    Refused{"noPort", kOwn + Variables{{"TUTTI_ROOT", "host"}}, {"TUTTI_ROOT=host", "host:port"}},
    Refused{"badPort", kOwn + Variables{{"TUTTI_ROOT", "h:70000"}}, {"1 to 65535"}},
    Refused{"bare6", kOwn + Variables{{"TUTTI_ROOT", "fd00::1:5"}}, {"[address]:port"}},
    Refused{"badId", kOwn + Variables{{"TUTTI_ID", "abc"}}, {"256 hex digits"}},
    Refused{"noId", kOwn + Variables{{"TUTTI_ID", std::string(256, '0')}}, {"TUTTI_ID: not a unique id"}},
    Refused{"blankSecret",
            kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET", " \n"}},
            {"TUTTI_SECRET is nothing but white space"}},
    Refused{"noMaster", {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, {"MASTER_ADDR and MASTER_PORT"}},
    Refused{"badMasterPort", kTorchrun + Variables{{"MASTER_PORT", "0"}}, {"MASTER_PORT=0"}},
    Refused{"badAzurePort", kOpenMpi + Variables{{"AZ_BATCH_MASTER_NODE", "h:x"}}, {"AZ_BATCH_MASTER_NODE=x"}},
    Refused{"pods",
            kPlain + Variables{{"PET_NPROC_PER_NODE", "8"}},
            {"RANK=1 and WORLD_SIZE=2", "PET_NPROC_PER_NODE=8", "TUTTI_LAUNCHER=plain"}},
    Refused{"slurmShell", kBatchShell, {"no launcher has said"}},
    Refused{"slurmInteractive", kBatchShell + Variables{{"SLURM_STEP_ID", "4294967290"}}, {"no launcher has said"}},
    Refused{"slurmNodes", kSlurm + Variables{{"SLURM_STEP_NODELIST", "n[1-"}}, {"SLURM_STEP_NODELIST=n[1-"}},
    Refused{"slurmCounts",
            kSlurm + Variables{{"SLURM_STEP_TASKS_PER_NODE", "8"}},
            {"SLURM_NODEID=1", "SLURM_STEP_TASKS_PER_NODE=8"}},
    Refused{"manyHosts", kOpenMpi, {"rank 5 of 8", "TUTTI_ROOT=host:port"}},
    Refused{"manyPodsOfHorovod", kHorovod + Variables{{"HOROVOD_SIZE", "8"}}, {"TUTTI_ROOT=host:port"}},
    Refused{"twoMpis",
            kOpenMpiOne + kMpich,
            {"openmpi says rank 1 of 4 (OMPI_COMM_WORLD_RANK/OMPI_COMM_WORLD_SIZE)", "mpich says rank 5 of 8",
             "TUTTI_LAUNCHER=mpich"}},
    Refused{"torchrunAndHorovod", kTorchrun + kHorovod, {"torchrun says rank 5 of 8", "horovod says rank 1 of 4"}},
    Refused{"twoOperators", kTensorflow + kPlain, {"tensorflow says rank 2 of 3", "plain says rank 1 of 2"}},
    Refused{"noSuchLauncher",
            kOpenMpiOne + Variables{{"TUTTI_LAUNCHER", "openMPI"}},
            {"TUTTI_LAUNCHER=openMPI: choose one of auto, none, auto-or-none, tutti, torchrun"}},
    Refused{"launcherNotThere",
            kOpenMpiOne + Variables{{"TUTTI_LAUNCHER", "slurm"}},
            {"TUTTI_LAUNCHER=slurm", "SLURM_PROCID"}},
    Refused{"launcherHalfThere", {{"PMI_SIZE", "4"}, {"TUTTI_LAUNCHER", "mpich"}}, {"PMI_RANK is not"}},
    Refused{"tfNoJson", {{"TF_CONFIG", "{cluster"}}, {"TF_CONFIG={cluster", "JSON"}},
    Refused{"tfNoTask", {{"TF_CONFIG", R"({"cluster":{"worker":["h:1"]}})"}}, {"\"task\""}},
    Refused{"tfIndex",
            {{"TF_CONFIG", R"({"cluster":{"worker":["h:1"]},"task":{"type":"worker","index":1}})"}},
            {"task worker 1, but the cluster has 1"}},
    Refused{"tfEvaluator",
            {{"TF_CONFIG", R"({"cluster":{"worker":["h:1"]},"task":{"type":"evaluator","index":0}})"}},
            {"\"evaluator\" is no rank"}},
    Refused{"tfAddress",
            {{"TF_CONFIG", R"({"cluster":{"worker":["h"]},"task":{"type":"worker","index":0}})"}},
            {"host:port instead of \"h\""}},
    Refused{"tfNumbers",
            {{"TF_CONFIG", R"({"cluster":{"worker":[1]},"task":{"type":"worker","index":0}})"}},
            {"expected host:port"}},
    Refused{"tfNested",
            {{"TF_CONFIG", R"({"cluster":{},"task":{"type":"worker","index":)" + std::string(60'000, '[') +
                               std::string(60'000, ']') + "}}"}},
            {"nested deeper"}},
    Refused{"tfShapes", {{"TF_CONFIG", R"({"cluster":{"worker":"h:1"},"task":7})"}}, {"is no list"}},
    Refused{"twoSecrets",
            kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET", "a"}, {"TUTTI_SECRET_FILE", "b"}},
            {"keep one"}},
    Refused{"secretInAFolder",
            kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET_FILE", "/tmp"}},
            {"TUTTI_SECRET_FILE=/tmp: it is a folder, not a regular file"}},
    Refused{"secretWithoutEnd",
            kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET_FILE", "/dev/zero"}},
            {"it is a device, not a regular file"}},
    Refused{"secretNowhere",
            kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET_FILE", "/nowhere/at/all"}},
            {"TUTTI_SECRET_FILE=/nowhere/at/all: it cannot be read: No such file or directory"}});

INSTANTIATE_TEST_SUITE_P(Table, LauncherRefusal, kRefusals, [](const auto& given) { return given.param.name; });

// What comes of a file that holds so much, and has that mode.
std::string secretOf(const std::string& content, mode_t mode = 0600) {
  const std::string path = testing::TempDir() + "tutti-secret-" + std::to_string(::getpid());
  std::ofstream(path) << content;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  std::string secret;
  try {
    secret =
        readLaunch(Environment(kOwn + Variables{{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET_FILE", path}})).secret.value();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidUsage);
    secret = e.what();
  }
  std::remove(path.c_str());
  return secret;
}

TEST(Launcher, ASecretFileIsReadWhereItsUserAloneMay) {
  EXPECT_EQ(secretOf("open sesame \n"), "open sesame");
  EXPECT_NE(secretOf("open sesame", 0644).find("its mode is 0644: other users may read"), std::string::npos);
  EXPECT_NE(secretOf(" \n").find("there is nothing in it but white space"), std::string::npos);
  EXPECT_NE(secretOf(std::string(kMostFileBytes + 1, 'x')).find("it has more than 65536 bytes"), std::string::npos);
}

// A line of a file ends in a newline, `$(cat file)` takes it away, and a job's script may have kept it.
TEST(Launcher, WhiteSpaceAroundASecretOrAnIdDoesNotCount) {
  const auto launchWith = [](const Variables& more) { return readLaunch(Environment(kOwn + more)); };
  for (const char* text : {"open sesame", "open sesame\n", "\t open sesame \r\n"}) {
    EXPECT_EQ(launchWith({{"TUTTI_ROOT", "h:1"}, {"TUTTI_SECRET", text}}).secret, "open sesame");
    EXPECT_EQ(secretOf(text), "open sesame");
  }
  UniqueId id;
  id.job = 7;
  EXPECT_EQ(launchWith({{"TUTTI_ID", " " + toHex(encode(id)) + "\n"}}).id.value().job, 7u);
}

// No text that a user sees, of an error or of a launch, may hold what proves membership.
TEST(Launcher, SecretsAreNeverShown) {
  const Variables secrets{{"TUTTI_SECRET", "opensesame"}, {"TUTTI_ID", "c0ffeec0ffee"}};
  for (const Variables& base : {kOwn, kOwn + Variables{{"TUTTI_ROOT", "h:1"}}, kOpenMpiOne, kTorchrun + kHorovod,
                                Variables{}, kOwn + Variables{{"TUTTI_SECRET_FILE", "/dev/null"}}}) {
    std::string text;
    try {
      text = readLaunch(Environment(base + secrets)).source;
    } catch (const Error& e) {
      text = e.what();
    }
    EXPECT_EQ(text.find("opensesame"), std::string::npos) << text;
    EXPECT_EQ(text.find("c0ffee"), std::string::npos) << text;
  }
}

TEST(Launcher, EveryRowCanBeForcedAndTheSettingListsThem) {
  std::string names = "auto, none, auto-or-none";
  for (const LauncherRow& row : launcherRows()) names += std::string(", ") + row.name;
  EXPECT_EQ(names, settings::findSetting("TUTTI_LAUNCHER")->values);
}

void expectHalfIsRefused(Variables half, settings::Name there, settings::Name missing) {
  half[there.text()] = "2";
  const std::string text = fmt::format("{}=2 is set but {} is not", there.text(), missing.text());
  try {
    readLaunch(Environment(half));
    ADD_FAILURE() << text;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

// Either half of every set alone: what is missing is told of the row whose own it is, not of one that borrows the name.
TEST(Launcher, HalfASetIsToldOfItsOwner) {
  const auto rows = launcherRows();
  for (const LauncherRow& row : rows) {
    if (row.read) continue;  // one variable says it all
    // Slurm sets its own in scripts as well, which are no ranks.
    const bool inSteps = row.name == std::string_view("slurm");
    const Variables beside = inSteps ? Variables{{"SLURM_STEP_ID", "0"}} : Variables{};
    const auto owner = std::ranges::find(rows, row.size.front(), [](const auto& r) { return r.size.front(); });
    expectHalfIsRefused(beside, row.size.front(), owner->rank);
    expectHalfIsRefused(beside, row.rank, row.size.front());
    if (row.pair[0]) expectHalfIsRefused({}, row.pair[0], row.pair[1]);
  }
}

TEST(Launcher, JobsOfOneHostAreToldApart) {
  const auto keyOf = [](const Variables& variables) { return readLaunch(Environment(variables)).jobKey; };
  const Variables one = kTorchrun + Variables{{"LOCAL_WORLD_SIZE", "8"}};
  EXPECT_NE(keyOf(one), keyOf(one + Variables{{"MASTER_PORT", "29501"}}));
  EXPECT_NE(keyOf(one), keyOf(one + Variables{{"TORCHELASTIC_RESTART_COUNT", "1"}}));
  EXPECT_NE(keyOf(kOpenMpiOne), keyOf(kOpenMpiOne + Variables{{"PMIX_NAMESPACE", "prterun-8"}}));
  EXPECT_EQ(keyOf(kSlurm), keyOf(kSlurm + Variables{{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}}));
}

TEST(NodeList, IsExpanded) {
  using Names = std::vector<std::string>;
  const auto nodes = [](const char* text) { return expandNodes("N", text); };
  EXPECT_EQ(nodes("n1"), Names{"n1"});
  EXPECT_EQ(nodes("n[1-3,7]"), (Names{"n1", "n2", "n3", "n7"}));
  EXPECT_EQ(nodes("a,b-[08-10]-x,c"), (Names{"a", "b-08-x", "b-09-x", "b-10-x", "c"}));
  EXPECT_EQ(nodes("r[1-2]n[3,5]"), (Names{"r1n3", "r1n5", "r2n3", "r2n5"}));
  EXPECT_EQ(nodes("n[098-101]"), (Names{"n098", "n099", "n100", "n101"}));
  for (const char* bad : {"n[1-3", "n1]", "n[3-1]", "n[a]", "n[1-]", "n[[1]]", "a,,b", "n[1,]", ",", "n[0-4000000000]",
                          "n[0-1000000][0-1000000]"})
    EXPECT_THROW(nodes(bad), Error) << bad;
}

TEST(NodeList, CountsAreExpanded) {
  using Counts = std::vector<int>;
  const auto counts = [](const char* text) { return expandCounts("N", text); };
  EXPECT_EQ(counts("4(x2),3"), (Counts{4, 4, 3}));
  EXPECT_EQ(counts("1"), Counts{1});
  for (const char* bad : {"4(x2", "4(x)", "(x2)", "x", "4,,", "4(x99999999)", "99999999", "-1"})
    EXPECT_THROW(counts(bad), Error) << bad;
}

TEST(Launcher, ARangeThatIsToldIsTheOneThatCounts) {
  const auto refusalOf = [](const char* rank, const char* size) -> std::string {
    try {
      readLaunch(Environment({{"TUTTI_RANK", rank}, {"TUTTI_SIZE", size}, {"TUTTI_ROOT", "n1:29500"}}));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusalOf("0", "16385"), "TUTTI_SIZE=16385: expected a whole number from 1 to 16384");
  EXPECT_EQ(refusalOf("16384", "16384"), "TUTTI_RANK=16384: expected a whole number from 0 to 16383");
  EXPECT_EQ(refusalOf("16383", "16384"), "");
}

}  // namespace
}  // namespace tutti::control
