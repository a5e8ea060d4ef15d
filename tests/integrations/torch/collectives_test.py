"""Every collective of torch.distributed, by every type and operator: see ranks/collectives.py."""
import jobs
from torch_jobs import TorchTest


class Collectives(TorchTest):
    def test_one_rank(self):
        self.torchrun(1, "collectives.py")

    def test_two_ranks(self):
        self.torchrun(2, "collectives.py")

    def test_three_ranks(self):
        self.torchrun(3, "collectives.py")

    def test_four_ranks_over_tcp(self):
        self.torchrun(4, "collectives.py", TUTTI_TRANSPORT="tcp")


if __name__ == "__main__":
    jobs.main()
