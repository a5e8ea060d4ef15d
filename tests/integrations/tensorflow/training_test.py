"""Models that workers train together come out as what one process trains on the whole batch."""
import jobs
import workers


class Training(workers.WorkersTest):
    def test_a_chief_and_a_worker(self):
        self.workers_do(2, "training.py", "fit", "loop", "embedding", "overflow")


class Longer(workers.WorkersTest):
    def test_ways_to_run_a_step_and_states_beside_gradients(self):
        self.workers_do(2, "training.py", "ways", "statistics", "state")

    def test_mixed_precision(self):
        self.workers_do(2, "training.py", "mixed")

    def test_four_workers_without_a_chief(self):
        self.workers_do(4, "training.py", "fit", "loop", "embedding", "overflow", "state", chief=False)


if __name__ == "__main__":
    jobs.main()
