"""A worker that dies."""
import unittest

import jobs
import workers


class Failures(unittest.TestCase):
    def test_the_others_name_a_worker_that_was_killed(self):
        done = workers.run(3, jobs.RANKS / "failing.py")
        self.assertEqual([each.status for each in done], [0, -9, 0], workers.shown(done))
        for survivor in (0, 2):
            self.assertTrue(done[survivor].output.rstrip().endswith("well"), workers.shown(done))


if __name__ == "__main__":
    jobs.main()
