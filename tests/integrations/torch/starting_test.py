"""The ways in which jobs of PyTorch start; users write backend="tutti", and no import."""
import tempfile
from pathlib import Path

import jobs
from torch_jobs import TorchTest, by_hand
from tutti._ports import free_port


class Starting(TorchTest):
    def by_hand(self, ranks, *arguments, script="starting.py", well=None, **variables):
        statuses, said = by_hand(ranks, script, *arguments, **variables)
        self.assertEqual(statuses, [0] * ranks, said)
        self.assertEqual(said.count("well\n"), ranks if well is None else well, said)
        self.assertNotIn("Warning", said)

    def test_torchrun(self):
        for ranks in (2, 4):
            self.torchrun(ranks, "starting.py")

    def test_variables_set_by_hand(self):
        for ranks in (2, 4):
            self.by_hand(ranks)

    def test_tcp(self):
        self.by_hand(2, "tutti", f"tcp://127.0.0.1:{free_port()}")

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.by_hand(2, "tutti", (Path(folder) / "meeting").as_uri())

    def test_by_device(self):
        self.torchrun(2, "starting.py", "cpu:tutti")
        self.torchrun(2, "starting.py", "cpu:tutti,cuda:tutti")

    def test_a_rank_that_does_not_come_is_named(self):
        self.by_hand(3, script="absent.py", well=2)


if __name__ == "__main__":
    jobs.main()
