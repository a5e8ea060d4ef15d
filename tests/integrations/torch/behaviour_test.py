"""What the backend does beside moving data: see ranks/behaviour.py and ranks/messages.py."""
import jobs
from torch_jobs import TorchTest


class Behaviour(TorchTest):
    def test_two_ranks(self):
        self.torchrun(2, "behaviour.py")

    def test_four_ranks_over_tcp(self):
        self.torchrun(4, "behaviour.py", TUTTI_TRANSPORT="tcp")

    def test_pytorchs_own_checks(self):
        """They compare the calls of all ranks by collectives of their own."""
        self.torchrun(2, "behaviour.py", "asynchronous", "futures", "coalesced", "objects", "barriers",
                      TORCH_DISTRIBUTED_DEBUG="DETAIL", TORCH_CPP_LOG_LEVEL="ERROR")
        self.torchrun(2, "collectives.py", "all_gather_uneven", "gaps", "as_gloo", "all_to_all_uneven",
                      TORCH_DISTRIBUTED_DEBUG="DETAIL", TORCH_CPP_LOG_LEVEL="ERROR")


class Messages(TorchTest):
    def test_two_ranks(self):
        self.torchrun(2, "messages.py")

    def test_three_ranks(self):
        self.torchrun(3, "messages.py")


if __name__ == "__main__":
    jobs.main()
