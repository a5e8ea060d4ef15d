"""Runs the examples of training on tutti, and on PyTorch's own Gloo for comparison: the same script with one word changed."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

import jobs
import torch
from tutti._ports import free_port

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
TESTED, REFERENCE = "tutti", "gloo"
# What sums of more than two numbers, in fp32 and in another order, may come to in the end: where one puts a ReLU's input on the
# other side of zero, the weights of that neuron part by some 1e-4.
ANOTHER_ORDER = 1e-3


def tutti_run(ranks):
    return [sys.executable, "-m", "tutti.run", "-n", str(ranks)]


def torchrun(ranks):
    return ["torchrun", "--nproc-per-node", str(ranks), "--master-addr", "127.0.0.1", "--master-port", str(free_port())]


def mpirun(ranks):
    if not shutil.which("mpirun"):
        raise unittest.SkipTest("needs mpirun: Debian's package openmpi-bin")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), sys.executable]


def environment(**variables):
    """That of a shell which has started nothing yet. Caches of compiled code are below the virtual environment."""
    return jobs.clean_environment(PYTHONPATH="", DS_ACCELERATOR="cpu", PYTHONDONTWRITEBYTECODE="1",
                                  TORCHINDUCTOR_CACHE_DIR=str(Path(sys.prefix).parent / "inductor"), **variables)


class Processes:
    """Processes that make one job, all of which end with it."""

    def __init__(self):
        self.started = []

    def start(self, command, variables):
        output = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill up
        process = subprocess.Popen([str(word) for word in command], env=variables, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        self.started.append((process, output))

    def wait(self):
        """Until all have ended: what they have printed. Whoever has not by the deadline is ended, its children too."""
        try:
            statuses = [process.wait(jobs.SECONDS) for process, _ in self.started]
        except subprocess.TimeoutExpired:
            statuses = "some did not end"
        finally:
            self.end()
        texts = [self.printed(output) for _, output in self.started]
        if statuses != [0] * len(self.started):
            raise AssertionError(f"exit statuses: {statuses}\n" + "\n".join(texts)[-12000:])
        return "\n".join(texts)

    @staticmethod
    def printed(output):
        with output:
            output.seek(0)
            return output.read()

    def end(self):
        """Asks those that still run first: a launcher then ends its ranks, which may be in process groups of their own. Of one
        that has been waited for the number may be somebody else's by now."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self.running():
                os.killpg(process.pid, number)
            for process in self.running():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)

    def running(self):
        return [process for process, _ in self.started if process.poll() is None]


def run(command, **variables):
    """What a command prints, which must end well."""
    job = Processes()
    job.start(command, environment(**variables))
    return job.wait()


@dataclass
class Learned:
    """What a job leaves: tensors by name, and the mean loss of each epoch."""

    model: dict
    losses: list
    printed: str = ""


class TrainingTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def read(self, checkpoint):
        saved = torch.load(checkpoint, weights_only=True)
        return Learned(saved["model"], saved["losses"])

    def train(self, script, *arguments, backend=TESTED, ranks=2, launcher=tutti_run, name="checkpoint", **variables):
        """Runs an example to its end, and reads the checkpoint that it leaves."""
        checkpoint = self.folder / f"{backend}-{ranks}-{name}"
        words = [*launcher(ranks), EXAMPLES / script, "--backend", backend, "--checkpoint", checkpoint, *arguments]
        printed = run(words, **variables)
        learned = self.read(checkpoint)
        learned.printed = printed
        return learned

    def trains(self, script, *arguments, bound=0.0, only_reference=(), **more):
        """On tutti a job learns what it learns on Gloo: every bit of it, or to a bound."""
        reference = self.train_reference(script, *arguments, *only_reference, **more)
        return self.same(self.train(script, *arguments, **more), reference, bound)

    def train_reference(self, *arguments, **more):
        """On Gloo. A process of that has been seen to abort as it ended, its work done: then once more."""
        try:
            return self.train(*arguments, backend=REFERENCE, **more)
        except AssertionError as error:
            if "terminate called without an active exception" not in str(error):
                raise
        return self.train(*arguments, backend=REFERENCE, **more)

    def same(self, learned, reference, bound=0.0):
        loss, other = learned.losses[-1], reference.losses[-1]
        worst = self.difference(learned, reference)
        print(f"\n  loss {loss:.6f} on {TESTED}, {other:.6f} on {REFERENCE}; the largest difference is {worst:.1e} "
              f"(allowed: {bound:.0e})", flush=True)
        guessing = 2.3  # the logarithm of ten, less a little
        self.assertLess(loss, reference.losses[0] if len(reference.losses) > 1 else guessing, "nothing was learned")
        self.assertEqual(len(learned.losses), len(reference.losses))
        self.assertLessEqual(worst, bound)
        return learned

    def difference(self, learned, reference):
        """The largest, over all losses and parameters. Not a number is no small difference."""
        self.assertEqual(learned.model.keys(), reference.model.keys())
        self.assertTrue(learned.model)
        pairs = [(learned.model[name].double(), reference.model[name].double()) for name in reference.model]
        pairs.append((torch.tensor(learned.losses).double(), torch.tensor(reference.losses).double()))
        return max((one - other).abs().nan_to_num(torch.inf).max().item() for one, other in pairs)
