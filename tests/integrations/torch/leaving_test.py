"""Processes that end while callbacks in Python are under way: see ranks/leaving.py."""
import jobs
from torch_jobs import TorchTest, by_hand


class Leaving(TorchTest):
    def leave(self, how):
        statuses, said = by_hand(2, "leaving.py", how)
        self.assertEqual(statuses, [0, 0], said)
        self.assertEqual(said, "well\n" * 2)

    def test_callbacks_that_come_meanwhile(self):
        for _ in range(5):
            self.leave("well")

    def test_callbacks_of_what_never_ends(self):
        self.leave("alone")

    def test_callbacks_of_what_fails(self):
        self.leave("failed")

    def test_callbacks_of_messages(self):
        self.leave("received")


if __name__ == "__main__":
    jobs.main()
