"""Jobs of PyTorch on this host, as torchrun starts them and as a user does by hand."""
import os
import subprocess
import sys
import tempfile

import jobs
from tutti._ports import free_port

TORCHRUN = (sys.executable, "-m", "torch.distributed.run")


def environment(**more):
    return jobs.clean_environment(**{"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **more})


def torchrun(ranks, script, *arguments, options=(), **variables):
    """Runs ranks/<script> in so many processes; what came of it, with its output as text."""
    command = [*TORCHRUN, "--standalone", "--nproc-per-node", str(ranks), *options, str(jobs.RANKS / script), *arguments]
    return jobs.run(command, environment(**variables))


def by_hand(ranks, script, *arguments, **variables):
    """The same, where nobody but the variables of env:// says who the processes are: their exit statuses, and all that they said."""
    told = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(ranks), "NODE_RANK": "0"}
    with tempfile.TemporaryFile("w+") as said:
        started = [subprocess.Popen([sys.executable, str(jobs.RANKS / script), *arguments], stdout=said, stderr=said,
                                    env=environment(RANK=str(rank), LOCAL_RANK=str(rank), **told, **variables))
                   for rank in range(ranks)]
        try:
            statuses = [process.wait(jobs.SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
        said.seek(0)
        return statuses, said.read()


class TorchTest(jobs.JobTest):
    def torchrun(self, ranks, script, *arguments, **variables):
        """Every rank ends well, and says so."""
        job = torchrun(ranks, script, *arguments, **variables)
        self.assertEqual(job.returncode, 0, f"{script} {arguments}\n{job.stdout}\n{job.stderr}")
        self.assertEqual(job.stdout.count("well\n"), ranks, job.stdout + job.stderr)
        sys.stderr.write("".join(f"{line}\n" for line in job.stdout.splitlines() if not line.endswith("well")))
        return job
