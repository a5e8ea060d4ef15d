"""Ranks of tutti.hvd that stay away, leave, die or fork."""

import jobs


class Failures(jobs.JobTest):
    def test_what_a_job_survives(self):
        """Stalls, those that leave, forks; and scripts that end without a word."""
        job = self.ranks_do(3, "failing.py", "stalled", "given_up", "left", "forked", "ends_without_a_word")
        for text in (
            "for more than 0.2 s operations have waited for ranks that have not submitted them",
            "allreduce of 'known': waits for rank 1",
            "allreduce of 'new': waits for rank 1",
        ):
            self.assertIn(text, job.stderr)

    def test_stalls_by_the_settings_of_horovod(self):
        job = jobs.run_ranks(
            2, "failing.py", "silent", HOROVOD_STALL_CHECK_DISABLE="1", HOROVOD_STALL_SHUTDOWN_TIME_SECONDS="0.5"
        )
        self.assertEqual((job.returncode, job.stderr, job.stdout.count("well")), (0, "", 2), job.stdout)

    def test_a_killed_rank_is_named(self):
        for case, ranks in (("killed", 3), ("killed_within", 2)):
            job = jobs.run_ranks(ranks, "failing.py", case)
            self.assertEqual(
                (job.returncode, job.stdout.count("survived")), (128 + 9, ranks - 1), job.stdout + job.stderr
            )

    def test_an_exception_is_told_to_the_others(self):
        job = jobs.run_ranks(2, "failing.py", "ended")
        self.assertEqual((job.returncode, job.stdout.count("survived")), (1, 1), job.stdout + job.stderr)


if __name__ == "__main__":
    jobs.main()
