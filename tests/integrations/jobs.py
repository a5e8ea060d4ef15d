"""Jobs of a few ranks on this host, for the tests; and what all files of tests end with."""
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
RANKS = Path(sys.argv[0]).resolve().parent / "ranks"  # beside the file of tests that runs
SECONDS = 120 * int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
LAUNCHER_NAMES = ("TUTTI_", "OMPI_", "PMI_", "SLURM_", "AZ_", "AZUREML_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TF_CONFIG",
                  "MV2_", "FLUX_", "PALS_", "HOROVOD_", "JSM_", "PMIX_", "MPI_")


def clean_environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_NAMES)}
    return {**kept, "PYTHONPATH": str(HERE), **more}


def run(command, environment):
    """What came of a command, with its output as text. Of one that takes too long nothing stays, nor of what it has started."""
    with subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            said, errors = process.communicate(timeout=SECONDS)
        except BaseException:
            process.terminate()  # so that launchers end their ranks, which may be in sessions of their own
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                pass
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, errors)


def put_off_the_end():
    """For a rank that outlives another: what the launcher ends the rest of the job with waits until it has spoken. Returns what
    waits for that end."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    return lambda: asked.wait(60)


def run_ranks(ranks, script, *arguments, options=(), **variables):
    """Starts ranks/<script> under python -m tutti.run; what came of it, with its output as text."""
    command = [sys.executable, "-m", "tutti.run", "-n", str(ranks), *options, str(RANKS / script), *arguments]
    return run(command, clean_environment(**variables))


def has(module):
    return importlib.util.find_spec(module) is not None


class JobTest(unittest.TestCase):
    def ranks_do(self, ranks, script, *arguments, **variables):
        """Every rank ends well, and prints that it has."""
        job = run_ranks(ranks, script, *arguments, **variables)
        self.assertEqual(job.returncode, 0, f"{script} {arguments}\n{job.stdout}\n{job.stderr}")
        self.assertEqual(job.stdout.count("well"), ranks, job.stdout + job.stderr)
        return job


def main():
    unittest.main(verbosity=2)
