"""Every collective on every type, on 2, 3 and 4 ranks; over TCP too."""
import jobs


class Collectives(jobs.JobTest):
    def test_on_two_ranks(self):
        self.ranks_do(2, "collectives.py")

    def test_on_three_ranks(self):
        self.ranks_do(3, "collectives.py")

    def test_on_four_ranks(self):
        self.ranks_do(4, "collectives.py")

    def test_over_tcp(self):
        self.ranks_do(2, "collectives.py", TUTTI_TRANSPORT="tcp")


if __name__ == "__main__":
    jobs.main()
