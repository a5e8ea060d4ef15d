"""What tutti.hvd does beside moving data: orders, fusion and its cache, join, what does not fit, process sets."""
import jobs


class Behaviour(jobs.JobTest):
    def test_orders_and_fusion(self):
        self.ranks_do(3, "behaviour.py", "who", "fused", "scrambled", "scrambled_kinds", "from_threads")

    def test_settings_of_horovod(self):
        self.ranks_do(2, "behaviour.py", "not_fused", HOROVOD_FUSION_THRESHOLD="2000")
        self.ranks_do(2, "behaviour.py", "small_cache", "scrambled", HOROVOD_CACHE_CAPACITY="3", HOROVOD_CYCLE_TIME="0")

    def test_join(self):
        self.ranks_do(3, "behaviour.py", "joined")

    def test_calls_that_do_not_match(self):
        self.ranks_do(3, "behaviour.py", "mismatched", "process_sets")

    def test_once_more(self):
        self.ranks_do(2, "behaviour.py", "again", "scrambled")

    def test_a_setting_that_is_no_number(self):
        job = jobs.run_ranks(1, "behaviour.py", "who", HOROVOD_CYCLE_TIME="fast")
        self.assertIn("HOROVOD_CYCLE_TIME is 'fast': it is a number from 0 on", job.stderr)


if __name__ == "__main__":
    jobs.main()
