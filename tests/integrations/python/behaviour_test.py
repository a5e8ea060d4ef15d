"""What the package does beside moving data: a job for each."""
import tempfile

import jobs


class Behaviour(jobs.JobTest):
    def test_bad_input_is_refused_in_words(self):
        self.ranks_do(2, "behaviour.py", "bad_input")

    def test_a_freed_communicator_says_so(self):
        self.ranks_do(2, "behaviour.py", "freed")

    def test_split_and_shrink(self):
        self.ranks_do(4, "behaviour.py", "families")

    def test_unique_ids_and_growing(self):
        self.ranks_do(3, "behaviour.py", "by_id")

    def test_requests_keep_their_buffers(self):
        self.ranks_do(2, "behaviour.py", "background")

    def test_wait_has_a_timeout(self):
        self.ranks_do(2, "behaviour.py", "waits")

    def test_other_threads_run_while_a_call_waits(self):
        self.ranks_do(2, "behaviour.py", "threads")

    def test_export_env_by_a_communicator(self):
        self.ranks_do(2, "behaviour.py", "exported")

    def test_groups(self):
        self.ranks_do(2, "behaviour.py", "groups")

    def test_operators(self):
        self.ranks_do(3, "behaviour.py", "operators")

    def test_buffers_and_tensors(self):
        self.ranks_do(2, "behaviour.py", "buffers")

    def test_stats_explain_and_dump(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranks_do(2, "behaviour.py", "told", folder)

    def test_a_forked_child_is_refused(self):
        self.ranks_do(2, "behaviour.py", "forked")


if __name__ == "__main__":
    jobs.main()
