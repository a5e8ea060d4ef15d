"""What ranks that share processors make of it: chains that go along these, and hosts that they are."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import perf_jobs
from ports import free_port


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
class Processors(unittest.TestCase):
    def expect(self, outcome, *texts):
        self.assertEqual(outcome.status, 0, outcome.explain("ends otherwise"))
        for text in texts:
            self.assertRegex(outcome.output + outcome.errors, text, outcome.explain("says something else"))

    def test_chains_go_from_processor_to_processor_once(self):
        for program in ("broadcast_perf", "reduce_perf"):
            outcome = self.dealt_to_two_processors(4, program, ("-r", "-1"), {"TUTTI_ALGO": "ring"})
            self.expect(outcome, r"\n    chain order +by shared cores: 0 2 1 3\n", r"proved \w+ by ring on 4 ranks", "0 OK")

    def test_processors_are_hosts_of_the_ranks_that_share_them(self):
        for program in ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "reduce_perf"):
            outcome = self.dealt_to_two_processors(8, program, (), {"TUTTI_ALGO": "hierarchical", "TUTTI_TRANSPORT": "tcp"})
            self.expect(outcome, r"\n    hosts of hierarchical +2 shared cores, 4 ranks each\n",
                        r"proved [\w-]+ by hierarchical on 8 ranks", "0 OK")

    def dealt_to_two_processors(self, size, program, words, settings):
        """The outcome of rank 0."""
        every, ranks = os.sched_getaffinity(0), []
        self.addCleanup(os.sched_setaffinity, 0, every)
        settings = {"TUTTI_SIZE": str(size), "TUTTI_ROOT": f"127.0.0.1:{free_port()}", "TUTTI_DEBUG": "info",
                    "TUTTI_VERIFY": "1", **settings}
        for rank in range(size):
            os.sched_setaffinity(0, {sorted(every)[rank % 2]})  # as whoever starts it has it
            ranks.append(perf_jobs.start(program, ("-b", "8", "-e", "1M", "-f", "64", "-n", "3", *words),
                                         {**settings, "TUTTI_RANK": str(rank)}))
        os.sched_setaffinity(0, every)
        return [perf_jobs.finish(rank, program, 60) for rank in ranks][0]


if __name__ == "__main__":
    unittest.main()
