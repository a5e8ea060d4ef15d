"""Ranks that die: who hears what, and how a job goes on."""
import signal
import sys
import tempfile
from pathlib import Path

import torch

import jobs
from torch_jobs import TorchTest, by_hand, torchrun


class Failures(TorchTest):
    def test_a_killed_rank_is_named_by_all_others(self):
        for transport, arguments in (("shm", ()), ("tcp", ("message",))):
            statuses, said = by_hand(3, "killed.py", *arguments, TUTTI_TRANSPORT=transport)
            self.assertEqual(statuses, [0, 0, -signal.SIGKILL], said)
            self.assertEqual(said.count("well\n"), 2, said)
            sys.stderr.write(said)

    def test_a_rank_that_cannot_begin_tells_the_others(self):
        for wrong in (0, 2):
            statuses, said = by_hand(3, "unable.py", str(wrong))
            self.assertEqual(statuses, [0, 0, 0], said)
            self.assertEqual(said.count("well\n"), 3, said)
            sys.stderr.write(said)

    def trained(self, ranks, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            job = torchrun(ranks, "restarting.py", folder, *arguments, options=("--max-restarts", "2"))
            self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
            sys.stderr.write(job.stdout)
            return job.stdout, torch.load(Path(folder) / "trained.pt")

    def test_torchrun_trains_on_from_the_checkpoint(self):
        """And comes to the very numbers of a job in which nobody died."""
        said, parameters = self.trained(2, "kill")
        self.assertIn("attempt 1 began with epoch 2,", said)
        said, expected = self.trained(2)
        self.assertIn("attempt 0 began with epoch 0,", said)
        self.assertTrue(all(torch.equal(ours, theirs) for ours, theirs in zip(parameters, expected)))


if __name__ == "__main__":
    jobs.main()
