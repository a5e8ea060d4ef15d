"""Jobs that train on tutti and on Gloo, and come to the same numbers: see ranks/training.py."""
import jobs
from torch_jobs import TorchTest


class Training(TorchTest):
    def test_two_ranks(self):
        self.torchrun(2, "training.py")

    def test_four_ranks(self):
        self.torchrun(4, "training.py", "plain", "accumulation", "compression", "fsdp2")


if __name__ == "__main__":
    jobs.main()
