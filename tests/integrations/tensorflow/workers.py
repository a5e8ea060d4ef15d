"""Workers of a job of TensorFlow's: processes on this host that are told who they are by TF_CONFIG alone."""
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import jobs

SECONDS = 2 * jobs.SECONDS  # TensorFlow is long in coming
# A thread for each rank, as there are more of them than cores.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1",
         "TF_NUM_INTEROP_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
Worker = namedtuple("Worker", "status output")  # output: what it has written, errors and all


def reserve_ports(count):
    """Sockets that listen at ports of this host, as TensorFlow's servers do."""
    return [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]


def config_of(rank, ports, chief):
    addresses = [f"localhost:{port}" for port in ports]
    chiefs, workers = addresses[:chief], addresses[chief:]
    task = {"type": "chief", "index": 0} if rank < chief else {"type": "worker", "index": rank - chief}
    return json.dumps({"cluster": {"worker": workers, **({"chief": chiefs} if chiefs else {})}, "task": task})


def run(ranks, script, *arguments, chief=True, listening=False, **variables):
    """Runs a script as so many workers, the first of them a chief or not, and returns each one's Worker. What is not
    `listening` cannot use the ports in TF_CONFIG: they are taken all the while."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(each) for each in reserve_ports(ranks)]
        ports = [each.getsockname()[1] for each in sockets]
        if listening:
            stack.close()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = [stack.enter_context(started(folder / str(rank), script, arguments, {
            "TF_CONFIG": config_of(rank, ports, int(chief)), **variables})) for rank in range(ranks)]
        statuses = ended(processes)
        outputs = [(folder / str(rank)).read_text(encoding="utf-8") for rank in range(ranks)]
        return [Worker(*each) for each in zip(statuses, outputs)]


def alone(script, *arguments, **variables):
    """Runs a script as the only process."""
    with tempfile.TemporaryDirectory() as folder:
        with started(Path(folder, "0"), script, arguments, {"TUTTI_LAUNCHER": "none", **variables}) as process:
            statuses = ended([process])
        return Worker(*statuses, Path(folder, "0").read_text(encoding="utf-8"))


def started(output, script, arguments, variables):
    with open(output, "wb") as file:
        return subprocess.Popen([sys.executable, str(script), *arguments], stdout=file, stderr=subprocess.STDOUT,
                                env=jobs.clean_environment(**QUIET, **variables))


def ended(processes):
    """How each has ended; -9 is also said of one that had to be."""
    deadline = time.monotonic() + SECONDS
    while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in processes:
        process.kill()
    return [process.wait() for process in processes]


def shown(workers):
    return "\n".join(f"rank {rank} ended with {worker.status}:\n{worker.output}" for rank, worker in enumerate(workers))


class WorkersTest(jobs.JobTest):
    def workers_do(self, ranks, script, *arguments, **options):
        """Every worker ends well, and says so. What rank 0 has told of figures is shown."""
        done = run(ranks, jobs.RANKS / script, *arguments, **options)
        self.assertTrue(all(each.status == 0 and each.output.rstrip().endswith("well") for each in done), shown(done))
        print("\n".join(line for line in done[0].output.splitlines() if line.startswith("figures:")))
        return done
