"""examples/horovod_digits.py: the same curve and the same parameters with one process, with several, and on Gloo.

Usage: digits_test.py EXAMPLES
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch

import jobs

EXAMPLES = Path(sys.argv.pop(1) if len(sys.argv) > 1 else jobs.HERE.parents[1] / "examples").resolve()
SCRIPT = EXAMPLES / "horovod_digits.py"
EPOCHS = ("--epochs", "2")


def losses(output):
    return [float(loss) for loss in re.findall(r"^epoch \d+  loss (\S+)", output, re.MULTILINE)]


def of_open_mpi(rank, size):
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(size),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
        "TUTTI_JOB": "hvd-digits",
    }


class Digits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.curve, cls.parameters = cls.train("alone", [*cls.launcher(1), SCRIPT])

    @classmethod
    def launcher(cls, ranks):
        return [sys.executable, "-m", "tutti.run", "-n", str(ranks)]

    @classmethod
    def train(cls, name, command, *options):
        """The losses of a job, and the parameters that it ends with."""
        path = Path(cls.folder.name, f"{name}.pt")
        done = jobs.run([*command, *EPOCHS, *options, "--save", path], jobs.clean_environment())
        assert done.returncode == 0, done.stdout + done.stderr
        print(f"{name}: {losses(done.stdout)}", flush=True)
        return losses(done.stdout), torch.load(path)

    def compare(self, curve, parameters, tolerance=1e-5):
        self.assertEqual(len(curve), int(EPOCHS[1]))
        torch.testing.assert_close(torch.tensor(curve), torch.tensor(self.curve), atol=tolerance, rtol=0)
        self.assertEqual(parameters.keys(), self.parameters.keys())
        for name, value in self.parameters.items():
            torch.testing.assert_close(
                parameters[name], value, atol=tolerance, rtol=0, msg=lambda text, name=name: f"{name}: {text}"
            )

    def test_it_learns(self):
        self.assertLess(self.curve[-1], self.curve[0])

    def test_two(self):
        self.compare(*self.train("two", [*self.launcher(2), SCRIPT], "--predivide", "2"))

    def test_four_by_torchrun(self):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4"]
        self.compare(*self.train("torchrun", [*command, SCRIPT]))

    def test_half(self):
        self.compare(*self.train("half", [*self.launcher(2), SCRIPT], "--fp16"), tolerance=1e-2)

    @unittest.skipUnless(shutil.which("mpirun"), "needs mpirun")
    def test_two_by_mpirun(self):
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable]
        self.compare(*self.train("mpirun", [*command, SCRIPT]))

    def test_two_with_the_variables_of_open_mpi(self):
        path = Path(self.folder.name, "mpi.pt")
        command = [sys.executable, str(SCRIPT), *EPOCHS, "--save", str(path)]
        ranks = [
            subprocess.Popen(
                command, env=jobs.clean_environment(**of_open_mpi(rank, 2)), stdout=subprocess.PIPE, text=True
            )
            for rank in range(2)
        ]
        try:
            outputs = [rank.communicate(timeout=jobs.SECONDS)[0] for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
        self.assertEqual([rank.returncode for rank in ranks], [0, 0])
        self.compare(losses(outputs[0]), torch.load(path))

    def test_gloo(self):
        """PyTorch's own backend comes to the same."""
        path = Path(self.folder.name, "gloo.pt")
        job = jobs.run_ranks(2, "gloo.py", str(EXAMPLES), str(path))
        self.assertEqual(job.returncode, 0, job.stderr)
        print(f"gloo: {losses(job.stdout)}", flush=True)
        self.compare(losses(job.stdout), torch.load(path))


if __name__ == "__main__":
    jobs.main()
