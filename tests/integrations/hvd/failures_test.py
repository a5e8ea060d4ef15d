"""Ranks of tutti.hvd that stay away, leave, die or fork."""
import jobs


class Failures(jobs.JobTest):
    def test_a_stall_is_reported_and_ends(self):
        job = self.ranks_do(3, "failing.py", "stalled")
        for text in ("for more than 0.2 s operations have waited for ranks that have not submitted them",
                     "allreduce of 'known': waits for rank 1", "allreduce of 'new': waits for rank 1"):
            self.assertIn(text, job.stderr)

    def test_a_stall_is_given_up(self):
        self.ranks_do(3, "failing.py", "given_up", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="0.5", HOROVOD_STALL_CHECK_TIME_SECONDS="0.3")

    def test_a_killed_rank_is_named(self):
        job = jobs.run_ranks(3, "failing.py", "killed")
        self.assertEqual((job.returncode, job.stdout.count("survived")), (128 + 9, 2), job.stdout + job.stderr)

    def test_one_that_leaves_is_named(self):
        self.ranks_do(2, "failing.py", "left")

    def test_an_exception_is_told_to_the_others(self):
        job = jobs.run_ranks(2, "failing.py", "ended")
        self.assertEqual((job.returncode, job.stdout.count("survived")), (1, 1), job.stdout + job.stderr)

    def test_the_end_of_scripts(self):
        job = self.ranks_do(2, "failing.py", "ends_without_a_word")
        self.assertEqual(job.stderr, "")

    def test_a_fork(self):
        self.ranks_do(2, "failing.py", "forked")


if __name__ == "__main__":
    jobs.main()
