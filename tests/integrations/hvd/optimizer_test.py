"""DistributedOptimizer of tutti.hvd: ranks with parts of a batch come to what one process comes to with the whole."""

import jobs


class Optimizer(jobs.JobTest):
    def test_two(self):
        self.ranks_do(2, "optimizer.py")

    def test_three(self):
        self.ranks_do(3, "optimizer.py")


if __name__ == "__main__":
    jobs.main()
