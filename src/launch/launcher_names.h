// Every variable that is read from a launcher, the TUTTI_* ones apart (settings/settings_table.h). Only names: the
// programs of bench show these of their environment and no others, and keep them from the ranks that they start
// themselves.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace tutti::control {

inline constexpr auto kLauncherNames = std::to_array<std::string_view>({
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PET_NPROC_PER_NODE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR",
    "HOROVOD_GLOO_RENDEZVOUS_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_MCA_ess_base_jobid",
    "OMPI_MCA_orte_ess_jobid",
    "AZUREML_RUN_ID",
    "AZ_BATCH_MASTER_NODE",
    "AZ_BATCHAI_MPI_MASTER_NODE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_LOCAL_RANK",
    "PMI_LOCAL_SIZE",
    "PMI_FD",
    "PMI_JOBID",
    "PMI_PORT",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "HYDRA_JOBID",
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MPIRUN_ID",
    "PALS_RANKID",
    "PALS_LOCAL_RANKID",
    "PALS_LOCAL_SIZE",
    "PALS_APID",
    "FLUX_TASK_RANK",
    "FLUX_TASK_LOCAL_ID",
    "FLUX_JOB_SIZE",
    "FLUX_JOB_NNODES",
    "FLUX_JOB_ID",
    "JSM_NAMESPACE_RANK",
    "JSM_NAMESPACE_SIZE",
    "JSM_NAMESPACE_LOCAL_RANK",
    "JSM_NAMESPACE_LOCAL_SIZE",
    "LSB_JOBID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_JOB_ID",
    "SLURM_RESTART_COUNT",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_TASKS_PER_NODE",
    "PMIX_RANK",
    "PMIX_NAMESPACE",
    "TF_CONFIG",
    "JOB_COMPLETION_INDEX",
});

constexpr bool isLauncherName(std::string_view name) {
  return std::ranges::find(kLauncherNames, name) != kLauncherNames.end();
}

}  // namespace tutti::control
