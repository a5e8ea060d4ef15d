"""What tutti.hvd does beside moving data: orders, fusion and its cache, join, what does not fit, process sets."""

import jobs


class Behaviour(jobs.JobTest):
    def test_three(self):
        self.ranks_do(
            3,
            "behaviour.py",
            "who",
            "fused",
            "scrambled",
            "scrambled_kinds",
            "from_threads",
            "joined",
            "mismatched",
            "process_sets",
            "counted",
        )

    def test_settings_of_horovod(self):
        self.ranks_do(2, "behaviour.py", "not_fused", "again", HOROVOD_FUSION_THRESHOLD="2000")
        self.ranks_do(2, "behaviour.py", "small_cache", "scrambled", HOROVOD_CACHE_CAPACITY="3", HOROVOD_CYCLE_TIME="0")

    def test_a_setting_that_is_no_number(self):
        job = jobs.run_ranks(1, "behaviour.py", "who", HOROVOD_CYCLE_TIME="fast")
        self.assertIn("HOROVOD_CYCLE_TIME is 'fast': it is a number from 0 on", job.stderr)


if __name__ == "__main__":
    jobs.main()
