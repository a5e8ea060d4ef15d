"""Every operation of tutti.hvd on every type."""

import jobs


class Operations(jobs.JobTest):
    def test_alone(self):
        self.ranks_do(1, "operations.py")

    def test_two(self):
        self.ranks_do(2, "operations.py")

    def test_three(self):
        self.ranks_do(3, "operations.py")


if __name__ == "__main__":
    jobs.main()
