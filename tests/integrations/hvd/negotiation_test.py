"""How ranks agree on what runs next, in one process: each rank is a thread, and what they tell each other lists in
memory."""

import itertools
import random
import threading
import unittest

import jobs

from tutti.hvd._engine import Engine
from tutti.hvd._fusion import LARGE_BYTES, batches
from tutti.hvd._negotiation import Negotiation, Ready
from tutti.hvd._request import Request


class Hub:
    """Where the ranks' words meet."""

    def __init__(self, size):
        self.words = [None] * size
        self.barrier = threading.Barrier(size)

    def gather(self, rank, word):
        self.words[rank] = word
        self.barrier.wait(jobs.SECONDS)
        everybody = list(self.words)
        self.barrier.wait(jobs.SECONDS)
        return everybody


class Port:
    def __init__(self, hub, rank):
        self.hub, self.rank = hub, rank
        self.sizes = []

    def all_and(self, words, size):
        self.sizes.append(size)
        together = -1
        for one in self.hub.gather(self.rank, words.to_bytes(size, "little")):
            assert len(one) == size, "the ranks' bits are of different sizes"
            together &= int.from_bytes(one, "little")
        return together

    def all_gather(self, words):
        return self.hub.gather(self.rank, words)


class Ranks:
    """Ranks that meet in rounds; what is submitted is submitted between two of them."""

    def __init__(self, size, capacity=100):
        hub = Hub(size)
        self.ports = [Port(hub, rank) for rank in range(size)]
        self.ranks = [Negotiation(rank, size, self.ports[rank], capacity) for rank in range(size)]

    def __getitem__(self, rank):
        return self.ranks[rank]

    def round(self):
        """What is ready: the same on all."""
        found = self.round_of_each()
        assert all(each == found[0] for each in found), found
        return found[0]

    def round_of_each(self):
        """What each rank has to end."""
        found = [None] * len(self.ranks)

        def meet(rank):
            found[rank] = self.ranks[rank].round()

        threads = [threading.Thread(target=meet, args=(rank,)) for rank in range(len(self.ranks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def names(self):
        return [ready.request.name for ready in self.round()]

    def submit(self, request, ranks=None):
        for rank in range(len(self.ranks)) if ranks is None else ranks:
            self.ranks[rank].submit(request)


def wish(name, shape=(4,), **more):
    return Request(name, "allreduce", "float32", shape, "sum", **more)


class Orders(unittest.TestCase):
    def test_scrambled(self):
        """Every rank submits the same, each in an order and at a pace of its own; shapes change now and then."""
        for seed, capacity in itertools.product(range(5), (0, 1, 7, 100)):
            dice, ranks = random.Random(seed), Ranks(3, capacity)
            for step in range(5):
                wanted = [wish(f"t{i}", (i + 1, 1 + step // 3)) for i in range(12)]
                queues = [dice.sample(wanted, len(wanted)) for _ in range(3)]
                seen = []
                while any(queues):
                    for rank, rest in enumerate(queues):
                        for _ in range(min(len(rest), dice.randrange(4))):
                            ranks[rank].submit(rest.pop())
                    seen += ranks.round()
                for _ in range(3):  # what a slot was taken from is said in full
                    seen += ranks.round()
                self.assertEqual(
                    sorted(ready.request.name for ready in seen), sorted(request.name for request in wanted)
                )
                self.assertFalse([ready.error for ready in seen if ready.error])
                self.assertFalse(any(ranks[rank].is_busy for rank in range(3)))

    def test_a_repeated_step_is_one_exchange_of_bits(self):
        ranks = Ranks(2)
        for _ in range(10):
            for number in range(20):
                ranks.submit(wish(f"t{number}"))
            self.assertEqual(len(ranks.round()), 20)
        self.assertEqual(ranks[0].counts, {"rounds": 10, "exchanges_in_full": 1, "cache_hits": 180})
        self.assertEqual(ranks.ports[0].sizes[-1], 1 + 3)

    def test_what_only_one_has_waits(self):
        ranks = Ranks(2)
        ranks.submit(wish("a"), [0])
        self.assertEqual(ranks.names(), [])
        ranks.submit(wish("b"))
        self.assertEqual(ranks.names(), ["b"])
        ranks.submit(wish("a"), [1])
        self.assertEqual(ranks.names(), ["a"])

    def test_one_that_changes_what_was_agreed(self):
        ranks = Ranks(3)
        ranks.submit(wish("a"))
        ranks.round()
        ranks.submit(wish("a"), [0, 1])  # a bit each
        ranks.submit(wish("a", (5,)), [2])
        found = ranks.round() + ranks.round()
        self.assertEqual(
            [ready.error for ready in found], ["the ranks differ in the shape: ranks 0, 1 have (4), rank 2 has (5)"]
        )
        ranks.submit(wish("a"))
        self.assertEqual(ranks.names(), ["a"])

    def test_rows_may_differ_where_they_may(self):
        ranks = Ranks(2)
        for rows in ((1, 2), (1, 2), (3, 2)):
            for rank in range(2):
                ranks[rank].submit(Request("g", "allgather", "float32", (rows[rank], 7)))
            found = ranks.round() or ranks.round()
            self.assertEqual([request.shape[0] for request in found[0].requests], list(rows))
            self.assertIsNone(found[0].error)
        self.assertEqual(ranks[0].counts["cache_hits"], 1)

    def test_each_difference_is_told(self):
        for field, other, text in (
            ("dtype", "int32", "the type: rank 0 has float32, rank 1 has int32"),
            ("op", "max", "the operator"),
            ("kind", "reducescatter", "the operation"),
            ("prescale", 2.0, "prescale_factor"),
        ):
            ranks = Ranks(2)
            ranks[0].submit(wish("a"))
            ranks[1].submit(Request(**{**vars(wish("a")), field: other}))
            self.assertIn(f"the ranks differ in {text}", ranks.round()[0].error)


class Groups(unittest.TestCase):
    def test_all_or_none(self):
        ranks = Ranks(2)
        for again in range(3):
            for name in "ab":
                ranks.submit(wish(name, group="g", group_size=3))
            ranks.submit(wish("c", group="g", group_size=3), [again % 2])
            self.assertEqual(ranks.names(), [])
            ranks.submit(wish("c", group="g", group_size=3), [1 - again % 2])
            self.assertEqual(sorted(ranks.names()), ["a", "b", "c"])

    def test_one_that_is_wrong_spoils_all(self):
        ranks = Ranks(2)
        ranks.submit(wish("a", group="g", group_size=2))
        for rank in range(2):
            ranks[rank].submit(wish("b", (rank,), group="g", group_size=2))
        errors = {ready.request.name: ready.error for ready in ranks.round()}
        self.assertIn("of its group, allreduce of 'b': the ranks differ in the shape", errors["a"])
        self.assertIn("the ranks differ in the shape", errors["b"])

    def test_groups_that_differ(self):
        ranks = Ranks(2)
        for rank in range(2):
            ranks[rank].submit(wish("a", group="g", group_size=2 + rank))
        self.assertIn("the ranks differ in the group's size", ranks.round()[0].error)

    def test_nothing_of_a_group_that_differs_is_left_behind(self):
        """What one rank alone has of it would wait for ever; once known or not."""
        ranks = Ranks(2)
        for again in range(3):
            for rank in range(2):
                for name in "abc"[: 2 + rank]:
                    ranks[rank].submit(wish(name, group="g", group_size=2 + rank))
            rounds = [ranks.round_of_each() for _ in range(2)]
            first, errors = (
                {ready.request.name: ready.error for found in rounds for ready in found[rank]} for rank in range(2)
            )
            self.assertEqual((sorted({*first, "c"}), sorted(errors)), (["a", "b", "c"], ["a", "b", "c"]), again)
            self.assertIn("of its group, allreduce of 'b': the ranks differ in the group's size", errors["c"])
            self.assertFalse(any(ranks[rank].is_busy for rank in range(2)))
            for name in "abc":
                ranks.submit(wish(name, group="g", group_size=3))
            self.assertEqual(sorted(ranks.names() + ranks.names()), ["a", "b", "c"])

    def test_who_has_not_submitted_it_has_none_to_end(self):
        """It may hand one of that name over as soon as it hears how the others of the group have ended."""
        ranks = Ranks(2)
        for rank in range(2):
            for name in "abc"[: 2 + rank]:
                ranks[rank].submit(wish(name, group="g", group_size=2 + rank))
        (left,) = [ready for ready in ranks.round_of_each()[0] if ready.request.name == "c"]
        self.assertEqual([request is None for request in left.requests], [True, False])

    def test_what_it_has_not_said_in_full_is_its_own(self):
        """Though others have."""
        ranks = Ranks(2)
        for name in "abc":
            ranks.submit(wish(name, group="g", group_size=3))
        self.assertEqual(sorted(ranks.names()), ["a", "b", "c"])
        for name in "abcd":
            ranks[0].submit(wish(name, group="g", group_size=4))
        for name in "abc":
            ranks[1].submit(wish(name, (4,) if name == "c" else (5,), group="g", group_size=3))
        ended = {ready.request.name: ready for ready in ranks.round_of_each()[1]}
        self.assertTrue(ended["c"].error)
        self.assertIsNotNone(ended["c"].requests[1])
        self.assertFalse(ranks[1].has((0, "c")))


class Tasks(unittest.TestCase):
    def test_a_later_one_of_a_name_is_not_taken_for_what_ends(self):
        engine = Engine.__new__(Engine)
        engine.rank, engine._wake = 0, threading.Condition()
        engine._tasks = {(0, "c"): "a task"}
        self.assertIsNone(engine._task(Ready((None, wish("c")), "of its group")))
        self.assertEqual(engine._task(Ready((wish("c"), wish("c")))), "a task")


class Joined(unittest.TestCase):
    def test_others_go_on(self):
        ranks = Ranks(3)
        ranks.submit(wish("a"))
        ranks.round()
        ranks[1].join()
        ranks.submit(wish("a"), [0, 2])
        ranks.submit(wish("b"), [0, 2])
        found = {ready.request.name: ready.requests for ready in ranks.round() + ranks.round()}
        self.assertEqual(sorted(found), ["a", "b"])
        for requests in found.values():
            self.assertEqual([request is not None for request in requests], [True, False, True])
        ranks[0].join(), ranks[2].join()
        self.assertEqual((ranks.names(), ranks[0].joined), ([], [1, 0, 2]))

    def test_what_needs_all(self):
        ranks = Ranks(2)
        ranks[0].join()
        ranks.round()
        ranks[1].submit(Request("x", "alltoall", "float32", (2,), splits=(1, 1)))
        ranks[1].submit(Request("y", "broadcast", "float32", (2,), root=0))
        errors = [ready.error for ready in ranks.round()]
        self.assertIn("rank 0 joined, and has no part in it", errors[0])
        self.assertIn("the root, rank 0, joined", errors[1])

    def test_what_needs_all_and_is_known(self):
        ranks = Ranks(2)
        known = [
            Request("x", "alltoall", "float32", (2,), splits=(1, 1)),
            Request("y", "broadcast", "float32", (2,), root=0),
        ]
        for request in known:
            ranks.submit(request)
        self.assertEqual(ranks.names(), ["x", "y"])
        ranks[0].join()
        ranks.round()
        for request in known:
            ranks[1].submit(request)
        errors = [ready.error for ready in ranks.round()]
        self.assertIn("rank 0 joined, and has no part in it", errors[0])
        self.assertIn("the root, rank 0, joined", errors[1])


class Stalls(unittest.TestCase):
    def test_who_lacks_what(self):
        ranks = Ranks(3)
        ranks.submit(wish("known"))
        ranks.round()
        ranks.submit(wish("known"), [0, 2])
        ranks.submit(wish("new"), [1])
        ranks.round()
        for rank in range(3):
            ranks[rank].say_again(longer_than=0)
        ranks.round()
        told = {request.name: missing for request, missing in ranks[0].waiting(longer_than=0)}
        self.assertEqual(told, {"known": [1], "new": [0, 2]})
        ranks.submit(wish("known"), [1])
        self.assertEqual(ranks.names(), ["known"])


class Sets(unittest.TestCase):
    def test_only_its_ranks_are_needed(self):
        ranks = Ranks(3)
        for rank in range(3):
            ranks[rank].sets[1] = (0, 2)
        for _ in range(2):
            ranks.submit(wish("a", process_set=1), [0, 2])
            ranks.submit(wish("a"), [1])  # the same name among all
            self.assertEqual([ready.request.process_set for ready in ranks.round()], [1])
            ranks.submit(wish("a"), [0, 2])
            self.assertEqual([ready.request.process_set for ready in ranks.round()], [0])
        ranks.submit(wish("b", process_set=1), [0])
        ranks.round()
        self.assertEqual([ranks[rank].forget_set(1) for rank in range(3)], [[(1, "b")], [], []])
        self.assertEqual(ranks.names(), [])
        ranks.submit(wish("c", process_set=1), [0])  # by a thread that has not heard of it yet
        self.assertEqual([ready.error for ready in ranks.round()], ["its process set has been removed"])


class Fusion(unittest.TestCase):
    def test_up_to_the_threshold(self):
        ready = [Ready((wish(f"t{i}", (10,)),)) for i in range(5)]
        self.assertEqual([len(batch.ready) for batch in batches(ready, 80)], [2, 2, 1])
        self.assertEqual([len(batch.ready) for batch in batches(ready, 0)], [1] * 5)
        self.assertEqual([len(batch.ready) for batch in batches(ready, 1e9)], [5])

    def test_what_is_large_goes_alone(self):
        shapes = ((LARGE_BYTES // 4,), (10,), (LARGE_BYTES // 4 - 1,))
        ready = [Ready((wish(str(shape), shape),)) for shape in shapes]
        self.assertEqual([len(batch.ready) for batch in batches(ready, 1e9)], [1, 2])
        grouped = [Ready((wish(str(shape), shape, group="g", group_size=3),)) for shape in shapes]
        self.assertEqual([len(batch.ready) for batch in batches(grouped, 1e9)], [3])

    def test_only_what_is_alike(self):
        one = vars(wish("t"))
        ready = [
            Ready((Request(**{**one, **other}),))
            for other in (
                {},
                {"dtype": "int32"},
                {"op": "max"},
                {"process_set": 1},
                {"kind": "broadcast"},
                {"prescale": 2.0},
            )
        ]
        self.assertEqual(sorted(len(batch.ready) for batch in batches(ready, 1e9)), [1, 1, 1, 1, 2])

    def test_a_group_stays_together(self):
        ready = [Ready((wish(f"t{i}", (10,), group="g", group_size=5),)) for i in range(5)]
        self.assertEqual([len(batch.ready) for batch in batches([Ready((wish("a"),)), *ready], 80)], [1, 5])


if __name__ == "__main__":
    jobs.main()
