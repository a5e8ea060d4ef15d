"""tutti.launch() and tutti.export_env() with the variables of each launcher."""
import os
import unittest
from unittest import mock

import jobs
import tutti


def exported(**variables):
    """What export_env() sets in a process that was started with these variables."""
    with mock.patch.dict(os.environ, {**jobs.clean_environment(), **variables}, clear=True):
        values = tutti.export_env()
        assert all(os.environ[name] == value for name, value in values.items())
        return values


def who(values):
    return [int(values.get(name, -1)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]


def where(values):
    return values["MASTER_ADDR"], values["MASTER_PORT"]


class ExportEnv(unittest.TestCase):
    def test_open_mpi_on_one_host(self):
        both = [exported(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_RANK=str(rank),
                         OMPI_COMM_WORLD_LOCAL_SIZE="2", OMPI_MCA_ess_base_jobid="4711") for rank in range(2)]
        self.assertEqual([who(values) for values in both], [[0, 2, 0, 2], [1, 2, 1, 2]])
        self.assertEqual(where(both[0]), where(both[1]))
        self.assertEqual(both[0]["MASTER_ADDR"], "127.0.0.1")
        other = exported(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_RANK="0",
                         OMPI_COMM_WORLD_LOCAL_SIZE="2", OMPI_MCA_ess_base_jobid="4712")
        self.assertNotEqual(where(other), where(both[0]))

    def test_azure_mpi_job(self):
        values = exported(OMPI_COMM_WORLD_RANK="5", OMPI_COMM_WORLD_SIZE="16", OMPI_COMM_WORLD_LOCAL_RANK="1",
                          OMPI_COMM_WORLD_LOCAL_SIZE="4", AZ_BATCH_MASTER_NODE="10.0.0.4:6000", AZUREML_RUN_ID="run7")
        self.assertEqual(who(values), [5, 16, 1, 4])
        self.assertEqual(where(values), ("10.0.0.4", "6000"))

    def test_azure_mpi_job_on_one_node(self):
        values = exported(OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_RANK="0",
                          OMPI_COMM_WORLD_LOCAL_SIZE="2", AZ_BATCHAI_MPI_MASTER_NODE="10.0.0.4", AZUREML_RUN_ID="run7")
        self.assertEqual(who(values), [0, 2, 0, 2])

    def test_open_mpi_on_several_hosts_tells_no_place(self):
        with self.assertRaisesRegex(tutti.InvalidUsage, "nothing says where the ranks of several hosts meet"):
            exported(OMPI_COMM_WORLD_RANK="5", OMPI_COMM_WORLD_SIZE="16", OMPI_COMM_WORLD_LOCAL_RANK="1",
                     OMPI_COMM_WORLD_LOCAL_SIZE="4")

    def test_slurm(self):
        values = exported(SLURM_PROCID="3", SLURM_NTASKS="4", SLURM_STEP_NUM_TASKS="4", SLURM_LOCALID="1", SLURM_NODEID="1",
                          SLURM_STEP_ID="0", SLURM_JOB_ID="77", SLURM_STEP_NODELIST="n[3-4]", SLURM_STEP_NUM_NODES="2",
                          SLURM_STEP_TASKS_PER_NODE="2(x2)")
        self.assertEqual(who(values), [3, 4, 1, 2])
        self.assertEqual(values["MASTER_ADDR"], "n3")

    def test_tutti_meets_where_it_did(self):
        slurm = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1", "SLURM_NODEID": "1",
                 "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "77", "SLURM_STEP_NODELIST": "n[3-4]", "SLURM_STEP_NUM_NODES": "2",
                 "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}
        with mock.patch.dict(os.environ, {**jobs.clean_environment(), **slurm}, clear=True):
            before = tutti.launch()
            tutti.export_env()
            after = tutti.launch()
        self.assertEqual((before.launcher, after.launcher), ("slurm", "torchrun"))
        self.assertEqual((before.root_host, before.root_port), (after.root_host, after.root_port))

    def test_intel_mpi_and_mpich(self):
        values = exported(PMI_RANK="1", PMI_SIZE="2", MPI_LOCALRANKID="1", MPI_LOCALNRANKS="2")
        self.assertEqual((who(values), values["MASTER_ADDR"]), ([1, 2, 1, 2], "127.0.0.1"))

    def test_what_is_set_stays(self):
        values = exported(RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", LOCAL_WORLD_SIZE="2", MASTER_ADDR="h1", MASTER_PORT="1234")
        self.assertEqual((who(values), where(values)), ([1, 2, 1, 2], ("h1", "1234")))

    def test_horovod(self):
        values = exported(HOROVOD_RANK="0", HOROVOD_SIZE="2", HOROVOD_LOCAL_RANK="0", HOROVOD_LOCAL_SIZE="2")
        self.assertEqual(who(values), [0, 2, 0, 2])

    def test_tensorflow(self):
        values = exported(TF_CONFIG='{"cluster": {"chief": ["a:2222"], "worker": ["b:2222"]}, "task": {"type": "worker", "index": 0}}')
        self.assertEqual((who(values)[:2], values["MASTER_ADDR"]), ([1, 2], "a"))

    def test_by_hand(self):
        values = exported(TUTTI_RANK="1", TUTTI_SIZE="3", TUTTI_LOCAL_RANK="1", TUTTI_LOCAL_SIZE="3", TUTTI_JOB="mine")
        self.assertEqual(who(values), [1, 3, 1, 3])

    def test_nobody(self):
        with self.assertRaisesRegex(tutti.InvalidUsage, "no launcher has said who this process is"):
            exported()
        self.assertEqual(who(exported(TUTTI_LAUNCHER="none")), [0, 1, 0, 1])

    def test_nothing_else_is_touched(self):
        with mock.patch.dict(os.environ, {**jobs.clean_environment(), "TUTTI_LAUNCHER": "none"}, clear=True):
            before = dict(os.environ)
            values = tutti.export_env()
            self.assertEqual({**before, **values}, dict(os.environ))

    def test_launch(self):
        with mock.patch.dict(os.environ, {**jobs.clean_environment(), "TUTTI_RANK": "1", "TUTTI_SIZE": "2",
                                          "TUTTI_ROOT": "n1:29500"}, clear=True):
            told = tutti.launch()
        self.assertEqual((told.rank, told.size, told.launcher, told.root_host, told.root_port, told.one_host),
                         (1, 2, "tutti", "n1", 29500, False))
        self.assertEqual(told.source, "TUTTI_RANK/TUTTI_SIZE/TUTTI_ROOT")


if __name__ == "__main__":
    jobs.main()
