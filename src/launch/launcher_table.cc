// Which variables say who this process is.
//
//   row         rank                  size                   local rank, local size         where several hosts meet
//   ----------  --------------------  ---------------------  -----------------------------  ------------------------
//   tutti       TUTTI_RANK            TUTTI_SIZE             TUTTI_LOCAL_RANK, _SIZE        (the user says it)
//   torchrun    RANK                  WORLD_SIZE             LOCAL_RANK, LOCAL_WORLD_SIZE   MASTER_ADDR, MASTER_PORT
//   horovod     HOROVOD_RANK          HOROVOD_SIZE           HOROVOD_LOCAL_RANK, _SIZE      (MASTER_*)
//   openmpi     OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE   .._LOCAL_RANK, .._LOCAL_SIZE   AZ_BATCH_MASTER_NODE
//   mpich       PMI_RANK              PMI_SIZE               MPI_LOCALRANKID, _LOCALNRANKS  PMI_FD
//   mvapich     MV2_COMM_WORLD_RANK   MV2_COMM_WORLD_SIZE    .._LOCAL_RANK, .._LOCAL_SIZE   PMI_FD
//   pals        PALS_RANKID           PMI_SIZE | WORLD_SIZE  PALS_LOCAL_RANKID, _SIZE       PMI_FD
//   flux        FLUX_TASK_RANK        FLUX_JOB_SIZE          FLUX_TASK_LOCAL_ID             PMI_FD
//   jsm         JSM_NAMESPACE_RANK    JSM_NAMESPACE_SIZE     .._LOCAL_RANK, .._LOCAL_SIZE   (MASTER_*)
//   slurm       SLURM_PROCID          SLURM_STEP_NUM_TASKS   SLURM_LOCALID, a list          SLURM_STEP_NODELIST
//   pmix        PMIX_RANK             TUTTI_SIZE             TUTTI_LOCAL_RANK, _SIZE        (the user says it)
//   tensorflow  TF_CONFIG             TF_CONFIG              counted in TF_CONFIG           TF_CONFIG's first rank
//   plain       RANK                  WORLD_SIZE             LOCAL_RANK, LOCAL_WORLD_SIZE   MASTER_ADDR, MASTER_PORT
//   kubernetes  JOB_COMPLETION_INDEX  TUTTI_SIZE                                            (MASTER_*)
//
// PMI_FD leads to the key-value space of the process manager, SLURM_STEP_NODELIST to its first node, with a port that
// is made of the numbers of job and step.
//
// Azure ML's PyTorch jobs are "torchrun", its MPI jobs "openmpi"; Hydra and Intel MPI are "mpich"; Kubeflow's,
// Volcano's and the like are "plain" when they run one rank a pod, and "torchrun" when torchrun runs in the pod.
//
// Where to meet. TUTTI_ID, TUTTI_ID_FILE and TUTTI_ROOT serve every row. Else all ranks on one host meet at a Unix
// socket that is named after the job; on several, what the last column says; else MASTER_ADDR with MASTER_PORT, which
// some users set beside their launcher's variables; else it is an error that says what to set.
//
// Precedence. TUTTI_RANK with TUTTI_SIZE is the user's word and wins silently, and so does the row that TUTTI_LAUNCHER
// names. Otherwise the first row wins whose set is whole. Rows are sorted by level: frameworks' launchers run inside
// MPI's (`mpirun -np HOSTS torchrun ...`), which run inside those of the machine (Slurm starts mpirun), which run
// inside pods. So a lower row of another level that disagrees is the outer launcher, and no contradiction. Two whole
// sets of one level that disagree on rank or size are one: an error that shows both. So are, within a set, half of it,
// what is no number, a rank that is not below its size, and more ranks on the host than there are. Of half a set the
// error names what is missing in the row whose own name is set: WORLD_SIZE, which others borrow, wants a RANK.
//
// Traps. RANK and WORLD_SIZE alone count pods with some operators: where PET_NPROC_PER_NODE says that torchrun was to
// be run in the pod, they are refused. Slurm sets its variables in the shell of a batch job too, where nobody but one
// process runs: they count only inside a step, and the steps of the batch script, of an interactive shell and of the
// external step have numbers of their own; a step of one task is usually such a shell too, and yields to what is below.
// OMPI_COMM_WORLD_NODE_RANK is not a host's number. HOROVOD_CROSS_SIZE is not the number of hosts when they differ in
// size. TensorFlow's evaluator and parameter servers are no ranks. torchrun's store sits at MASTER_PORT, TensorFlow's
// server at its worker's port: the root listens 1789 above them.
#include "launch/launcher_table.h"

#include <atomic>

#include "base/error.h"
#include "launch/besides.h"
#include "launch/nodelist.h"
#include "launch/pmi.h"
#include "launch/tf_config.h"

namespace tutti::control {
namespace {

using settings::Environment;

bool torchrunApplies(const Environment& environment) {
  if (!environment.find("LOCAL_RANK")) return false;
  if (environment.find("MASTER_ADDR") && environment.find("MASTER_PORT")) return true;
  const auto local = environment.find("LOCAL_WORLD_SIZE");
  return (local && local == environment.find("WORLD_SIZE")) || environment.find("TUTTI_ROOT") ||
         environment.find("TUTTI_ID") || environment.find("TUTTI_ID_FILE");
}

// "host:port", or a host alone.
bool placeOnAzure(const Environment& environment, LaunchInfo& launch) {
  constexpr int kUsualPort = 6105;
  constexpr settings::Name kSeveral = "AZ_BATCH_MASTER_NODE", kOne = "AZ_BATCHAI_MPI_MASTER_NODE";
  const settings::Name name = environment.find(kSeveral) ? kSeveral : kOne;
  const auto text = environment.find(name);
  if (!text) return false;
  const size_t colon = text->rfind(':');
  int64_t port = kUsualPort;
  if (colon != std::string::npos)
    port = Environment(Environment::Values{{name.text(), text->substr(colon + 1)}})
               .number(name, 1, 65535)
               .value_or(kUsualPort);
  launch.rootHost = text->substr(0, colon);
  launch.rootPort = besides(static_cast<int>(port));
  launch.source += fmt::format("/{}", name.text());
  return true;
}

// Hydra gives its jobs no name: the process at the other end of PMI_FD, the same for all ranks of a host, stands for
// it.
void tellPmiJobsApart(const Environment& environment, LaunchInfo& launch) {
  if (const auto fd = environment.number("PMI_FD", 0, 1 << 20)) launch.jobKey += pmi::ownerOf(static_cast<int>(*fd));
}

bool placeOfPmi(const Environment& environment, LaunchInfo& launch) {
  const auto fd = environment.number("PMI_FD", 0, 1 << 20);
  if (!fd) return false;
  // All ranks make the same communicators, so that their numbers agree.
  static std::atomic<int> number{0};
  launch.pmi = static_cast<int>(*fd);
  launch.pmiKey = number.fetch_add(1, std::memory_order_relaxed);
  launch.source += "/PMI_FD";
  return true;
}

bool isSlurmStep(const Environment& environment) {
  constexpr int64_t kFirstSpecial = 0xfffffff0, kLast = 0xffffffff;
  const auto step = environment.number("SLURM_STEP_ID", 0, kLast);
  return step && *step < kFirstSpecial;
}

// How many tasks this node has stands in a list such as "4(x2),3".
void readSlurmNode(const Environment& environment, LaunchInfo& launch) {
  const auto tasks = environment.find("SLURM_STEP_TASKS_PER_NODE");
  const auto node = environment.number("SLURM_NODEID", 0, 1 << 24);
  if (!tasks || !node) return;
  const auto counts = expandCounts("SLURM_STEP_TASKS_PER_NODE", *tasks);
  if (static_cast<size_t>(*node) >= counts.size())
    throw Error(ErrorCode::kInvalidUsage,
                fmt::format("SLURM_NODEID={} but SLURM_STEP_TASKS_PER_NODE={}: that is {} nodes", *node, *tasks,
                            counts.size()));
  launch.localSize = counts[static_cast<size_t>(*node)];
}

// A port below those that the kernel gives out, from the numbers of job and step: the same on every rank.
bool placeOfSlurm(const Environment& environment, LaunchInfo& launch) {
  constexpr int64_t kFirst = 20'000, kCount = 12'000, kMost = 0xffffffff;
  const auto nodes = environment.find("SLURM_STEP_NODELIST");
  const auto job = environment.number("SLURM_JOB_ID", 0, kMost);
  if (!nodes || !job) return false;
  launch.rootHost = expandNodes("SLURM_STEP_NODELIST", *nodes).front();
  const int64_t step = environment.number("SLURM_STEP_ID", 0, kMost).value_or(0);
  launch.rootPort = static_cast<uint16_t>(kFirst + (*job * 61 + step) % kCount);
  launch.source += "/SLURM_STEP_NODELIST/SLURM_JOB_ID";
  return true;
}

void refusePods(const Environment& environment, LaunchInfo& launch) {
  const auto inPod = environment.find("PET_NPROC_PER_NODE");
  if (!inPod || *inPod == "1" || launch.localRank >= 0 || environment.find("TUTTI_LAUNCHER") == "plain") return;
  throw Error(
      ErrorCode::kInvalidUsage,
      fmt::format("RANK={} and WORLD_SIZE={} without LOCAL_RANK count pods, and PET_NPROC_PER_NODE={} says that each "
                  "holds more than one rank: start the program with torchrun in the pod. If one rank a pod is "
                  "meant, set TUTTI_LAUNCHER=plain",
                  launch.rank, launch.size, *inPod));
}

constexpr LauncherRow kRows[] = {
    {.name = "tutti",
     .level = Level::kOwn,
     .rank = "TUTTI_RANK",
     .size = {"TUTTI_SIZE"},
     .localRank = {"TUTTI_LOCAL_RANK"},
     .localSize = {"TUTTI_LOCAL_SIZE"}},
    {.name = "torchrun",
     .level = Level::kFramework,
     .rank = "RANK",
     .size = {"WORLD_SIZE"},
     .localRank = {"LOCAL_RANK"},
     .localSize = {"LOCAL_WORLD_SIZE"},
     .jobKeys = {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"},
     .exclusive = false,
     .applies = torchrunApplies,
     .place = placeOfMaster},
    {.name = "horovod",
     .level = Level::kFramework,
     .rank = "HOROVOD_RANK",
     .size = {"HOROVOD_SIZE"},
     .localRank = {"HOROVOD_LOCAL_RANK"},
     .localSize = {"HOROVOD_LOCAL_SIZE"},
     .jobKeys = {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"}},
    {.name = "openmpi",
     .level = Level::kMpi,
     .rank = "OMPI_COMM_WORLD_RANK",
     .size = {"OMPI_COMM_WORLD_SIZE"},
     .localRank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
     .localSize = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     .jobKeys = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid", "AZUREML_RUN_ID"},
     .place = placeOnAzure},
    {.name = "mpich",
     .level = Level::kMpi,
     .rank = "PMI_RANK",
     .size = {"PMI_SIZE"},
     .localRank = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
     .localSize = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
     .jobKeys = {"PMI_JOBID", "PMI_PORT", "HYDRA_JOBID", "PALS_APID"},
     .more = tellPmiJobsApart,
     .place = placeOfPmi},
    {.name = "mvapich",
     .level = Level::kMpi,
     .rank = "MV2_COMM_WORLD_RANK",
     .size = {"MV2_COMM_WORLD_SIZE"},
     .localRank = {"MV2_COMM_WORLD_LOCAL_RANK"},
     .localSize = {"MV2_COMM_WORLD_LOCAL_SIZE"},
     .jobKeys = {"MPIRUN_ID", "PMI_PORT"},
     .more = tellPmiJobsApart,
     .place = placeOfPmi},
    {.name = "pals",
     .level = Level::kSystem,
     .rank = "PALS_RANKID",
     .size = {"PMI_SIZE", "WORLD_SIZE"},
     .localRank = {"PALS_LOCAL_RANKID"},
     .localSize = {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
     .jobKeys = {"PALS_APID"},
     .exclusive = false,
     .more = tellPmiJobsApart,
     .place = placeOfPmi},
    {.name = "flux",
     .level = Level::kSystem,
     .rank = "FLUX_TASK_RANK",
     .size = {"FLUX_JOB_SIZE"},
     .localRank = {"FLUX_TASK_LOCAL_ID"},
     .hosts = "FLUX_JOB_NNODES",
     .jobKeys = {"FLUX_JOB_ID"},
     .place = placeOfPmi},
    {.name = "jsm",
     .level = Level::kSystem,
     .rank = "JSM_NAMESPACE_RANK",
     .size = {"JSM_NAMESPACE_SIZE"},
     .localRank = {"JSM_NAMESPACE_LOCAL_RANK"},
     .localSize = {"JSM_NAMESPACE_LOCAL_SIZE"},
     .jobKeys = {"LSB_JOBID", "PMIX_NAMESPACE"}},
    {.name = "slurm",
     .level = Level::kSystem,
     .rank = "SLURM_PROCID",
     .size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
     .localRank = {"SLURM_LOCALID"},
     .hosts = "SLURM_STEP_NUM_NODES",
     .jobKeys = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     .yields = true,
     .pair = {"SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
     .applies = isSlurmStep,
     .more = readSlurmNode,
     .place = placeOfSlurm},
    {.name = "pmix",
     .level = Level::kSystem,
     .rank = "PMIX_RANK",
     .size = {"TUTTI_SIZE"},
     .localRank = {"TUTTI_LOCAL_RANK"},
     .localSize = {"TUTTI_LOCAL_SIZE"},
     .jobKeys = {"PMIX_NAMESPACE"},
     .exclusive = false},
    {.name = "tensorflow",
     .level = Level::kPods,
     .rank = "TF_CONFIG",
     .size = {"TF_CONFIG"},
     .jobKeys = {},
     .applies = tfConfigApplies,
     .read = readTfConfig,
     .place = placeOfTfConfig},
    {.name = "plain",
     .level = Level::kPods,
     .rank = "RANK",
     .size = {"WORLD_SIZE"},
     .localRank = {"LOCAL_RANK"},
     .localSize = {"LOCAL_WORLD_SIZE"},
     .jobKeys = {"MASTER_ADDR", "MASTER_PORT"},
     .exclusive = false,
     .more = refusePods,
     .place = placeOfMaster},
    {.name = "kubernetes",
     .level = Level::kIndex,
     .rank = "JOB_COMPLETION_INDEX",
     .size = {"TUTTI_SIZE"},
     .jobKeys = {"MASTER_ADDR", "MASTER_PORT"},
     .exclusive = false},
};

}  // namespace

std::span<const LauncherRow> launcherRows() { return kRows; }

bool placeOfMaster(const Environment& environment, LaunchInfo& launch) {
  const auto host = environment.find("MASTER_ADDR");
  if (!host || !environment.find("MASTER_PORT")) return false;
  launch.rootHost = *host;
  launch.rootPort = besides(static_cast<int>(*environment.number("MASTER_PORT", 1, 65535)));
  launch.source += "/MASTER_ADDR/MASTER_PORT";
  return true;
}

}  // namespace tutti::control
