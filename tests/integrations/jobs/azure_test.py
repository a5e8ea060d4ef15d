"""Jobs of Azure ML on two nodes, each a network namespace: with the variables of its PyTorch, MPI and TensorFlow distributions,
as docs/azureml.md tells them, and with nothing of tutti's."""
import json
import subprocess
import sys
from pathlib import Path

import jobs
import training

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "multihost"))
import multihost_test as multihost  # noqa: E402  pylint: disable=wrong-import-position

FIRST, PORT = "10.77.0.1", "6105"


def pytorch(node, local, here, nodes):
    """type: pytorch, with process_count_per_instance."""
    return {"MASTER_ADDR": FIRST, "MASTER_PORT": PORT, "RANK": str(node * here + local), "WORLD_SIZE": str(nodes * here),
            "LOCAL_RANK": str(local), "NODE_RANK": str(node), "AZUREML_RUN_ID": "jolly_pear_1", "AZUREML_NODE_COUNT": str(nodes)}


def mpi(node, local, here, nodes):
    """type: mpi: Open MPI's variables, and where the first node is."""
    return {"OMPI_COMM_WORLD_RANK": str(node * here + local), "OMPI_COMM_WORLD_SIZE": str(nodes * here),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(local), "OMPI_COMM_WORLD_LOCAL_SIZE": str(here),
            "OMPI_COMM_WORLD_NODE_RANK": str(local), "AZ_BATCH_MASTER_NODE": f"{FIRST}:6000",
            "AZ_BATCH_HOST_LIST": ",".join(f"10.77.0.{each + 1}" for each in range(nodes)), "AZUREML_RUN_ID": "jolly_pear_2",
            "AZUREML_EXPERIMENT_ID": "digits"}


def tensorflow(node, _local, _here, nodes):
    """type: tensorflow, with worker_count: a process a node."""
    workers = [f"10.77.0.{each + 1}:2222" for each in range(nodes)]
    return {"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": node}}),
            "AZUREML_RUN_ID": "jolly_pear_3"}


def enter(network, node):
    return network.entering(node + 1)


class AzureTest(training.TrainingTest):
    def setUp(self):
        super().setUp()
        try:
            multihost.check_machine()
        except multihost.CannotRun as reason:
            self.skipTest(f"needs network namespaces: {reason}")

    def start(self, network, distribution, here, *words, **settings):
        """Two nodes, `here` processes on each."""
        job = training.Processes()
        for rank in range(2 * here):
            node, local = divmod(rank, here)
            told = {**distribution(node, local, here, 2), **settings}
            job.start([*enter(network, node), sys.executable, *words], training.environment(**told))
        return job

    def on_nodes(self, distribution, here, *words):
        """What the processes print."""
        with multihost.Network(2) as network:
            return self.start(network, distribution, here, *words).wait()


class MpirunTest(AzureTest):
    """Open MPI itself on two nodes, which it reaches by a program that stands for ssh; beside its own variables, Azure ML's."""

    def agent(self, network):
        """Called with an address and a command for the node that has it."""
        path = self.folder / "agent"
        nodes = "".join(f"10.77.0.{host}) node={network.name(host)} ;; " for host in network.hosts)
        path.write_text(f'#!/bin/sh\ncase $1 in {nodes}esac\nshift\nexec nsenter --net=/run/netns/$node sh -c "$*"\n',
                        encoding="utf-8")
        path.chmod(0o755)
        return path

    def mpirun(self, *words):
        """What two processes on each node print."""
        with multihost.Network(2) as network:
            job, master = training.Processes(), f"AZ_BATCH_MASTER_NODE={FIRST}:6000"
            start = training.mpirun(4)[:-1] + ["--host", "10.77.0.1:2,10.77.0.2:2", "--mca", "plm_rsh_agent", self.agent(network)]
            job.start([*enter(network, 0), *start, "-x", master, sys.executable, *words],
                      training.environment(AZUREML_RUN_ID="jolly_pear_4"))
            return job.wait()


class Mpirun(MpirunTest):
    def test_who_they_are(self):
        printed = self.mpirun(Path(__file__).parent / "ranks/azure.py")
        for rank in range(4):
            self.assertIn(f"openmpi: rank {rank} of 4, {rank % 2} of 2 on its node, sum 10", printed)


class MpirunTraining(MpirunTest):
    def test_ddp(self):
        checkpoint = self.folder / "mpirun"
        self.mpirun(training.EXAMPLES / "pytorch/ddp.py", "--epochs", "2", "--checkpoint", checkpoint)
        reference = self.train("pytorch/ddp.py", "--epochs", "2", backend=training.REFERENCE, ranks=4)
        self.same(self.read(checkpoint), reference, bound=training.ANOTHER_ORDER)


class Distributions(AzureTest):
    """tutti.init() finds who a process is, and the others, by what the distribution sets."""

    def joins(self, distribution, launcher, here):
        printed = self.on_nodes(distribution, here, Path(__file__).parent / "ranks/azure.py")
        size = 2 * here
        for rank in range(size):
            self.assertIn(f"{launcher}: rank {rank} of {size}, {rank % here} of {here} on its node, sum {size * (size + 1) // 2}",
                          printed)

    def test_pytorch(self):
        self.joins(pytorch, "torchrun", 2)

    def test_mpi(self):
        self.joins(mpi, "openmpi", 2)

    def test_tensorflow(self):
        self.joins(tensorflow, "tensorflow", 1)


class TwoNetworks(AzureTest):
    """Nodes with an interface ib0 beside eth0, as IP over InfiniBand makes one."""

    def plug(self, network, host):
        peer = f"ib{host}"
        network.ip(host, "link", "add", "ib0", "type", "veth", "peer", "name", peer, "netns", network.name("hub"))
        network.ip("hub", "link", "set", peer, "master", "br0", "up")
        network.ip(host, "addr", "add", f"10.88.0.{host}/24", "dev", "ib0")
        network.ip(host, "link", "set", "ib0", "up")

    def sent(self, network, device):
        """Bytes that the first node has sent by a device."""
        shown = subprocess.run(["ip", "-n", network.name(1), "-s", "-j", "link", "show", device], capture_output=True, text=True,
                               check=True)
        return json.loads(shown.stdout)[0]["stats64"]["tx"]["bytes"]

    def carries(self, **settings):
        """The interface over which two nodes add 16 MiB in a process group."""
        with multihost.Network(2) as network:
            for host in network.hosts:
                self.plug(network, host)
            self.start(network, pytorch, 1, Path(__file__).parent / "ranks/sum.py", **settings).wait()
            sent = {device: self.sent(network, device) for device in ("eth0", "ib0")}
        self.assertGreater(sum(sent.values()), 16 << 20)
        return max(sent, key=sent.get)

    def test_the_default_route_unless_told(self):
        self.assertEqual(self.carries(), "eth0")

    def test_ip_over_infiniband_where_told(self):
        self.assertEqual(self.carries(TUTTI_SOCKET_IFNAME="ib"), "ib0")


class Training(AzureTest):
    """The same script under either distribution: on two nodes it learns what it learns on one."""

    def learns(self, distribution, here, **more):
        checkpoint, words = self.folder / "two-nodes", ("--epochs", "2")
        self.on_nodes(distribution, here, training.EXAMPLES / "pytorch/ddp.py", *words, "--checkpoint", checkpoint)
        reference = self.train("pytorch/ddp.py", *words, backend=training.REFERENCE, ranks=2 * here)
        self.same(self.read(checkpoint), reference, **more)

    def test_pytorch(self):
        self.learns(pytorch, 1)

    def test_mpi(self):
        self.learns(mpi, 1)


class MoreTraining(Training):
    """Two processes a node, started by Azure ML or by torchrun."""

    def test_pytorch(self):
        self.learns(pytorch, 2, bound=training.ANOTHER_ORDER)

    def test_mpi(self):
        self.learns(mpi, 2, bound=training.ANOTHER_ORDER)

    def test_torchrun_on_each_node(self):
        """process_count_per_instance: 1, and the command that docs/azureml.md gives for it."""
        checkpoint = self.folder / "torchrun"
        script = f"{training.EXAMPLES}/pytorch/ddp.py --epochs 2 --checkpoint {checkpoint}"
        command = ('exec torchrun --nnodes 2 --node-rank "$NODE_RANK" --nproc-per-node 2 --master-addr "$MASTER_ADDR" '
                   f'--master-port "$MASTER_PORT" {script}')
        with multihost.Network(2) as network:
            job = training.Processes()
            for node in range(2):
                job.start([*enter(network, node), "sh", "-c", command], training.environment(**pytorch(node, 0, 1, 2)))
            job.wait()
        reference = self.train("pytorch/ddp.py", "--epochs", "2", backend=training.REFERENCE, ranks=4)
        self.same(self.read(checkpoint), reference, bound=training.ANOTHER_ORDER)


if __name__ == "__main__":
    jobs.main()
