#!/usr/bin/env python3
"""Memory of tuttiMemAlloc, which ranks of one host map from each other and read in place (-R 2 of the measuring programs): right
results whoever has such memory, slots in the same words where that cannot be, and an error where a rank dies meanwhile.

    tests/conformance/mapped_test.py --bin build/release/bin
"""
import os
import resource
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from support.perf_jobs import ALGORITHMS, PROGRAMS  # noqa: E402
from support import one_copy  # noqa: E402
from support.refusing import refuse  # noqa: E402

PATIENCE = one_copy.PATIENCE
# Lengths around the least that is lent, and such that pieces and parts of ranks are no whole pages.
SIZES = ["-b", "15004", "-e", "1920512", "-f", "8", "-n", "2", "-w", "0", "-c", "1"]
MAPPED = ["-R", "2"]


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 20, resource.RLIM_INFINITY))


class Mapped(unittest.TestCase):
    BIN = Path(".")

    def run_program(self, name, *words, before=None, **variables):
        done = subprocess.run([self.BIN / name, *words], env={**os.environ, **variables}, capture_output=True, text=True,
                              preexec_fn=before, timeout=240 * PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def is_right(self, name, *words, **more):
        status, said = self.run_program(name, *SIZES, *words, **more)
        self.assertEqual(status, 0, f"{name} {words}\n{said}")
        self.assertIn("Out of bounds values : 0 OK", said)
        return said

    def ranks_of(self, size, name, words_of, variables_of=lambda rank: {}, before_of=lambda rank: None, port=40191):
        place = {"TUTTI_SIZE": str(size), "TUTTI_ROOT": f"127.0.0.1:{port}", "TUTTI_SECRET": os.urandom(16).hex()}
        return [subprocess.Popen([self.BIN / name, *words_of(rank)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 preexec_fn=before_of(rank),
                                 env={**os.environ, **place, "TUTTI_RANK": str(rank), **variables_of(rank)})
                for rank in range(size)]

    def all_end_well(self, ranks):
        said = [rank.communicate(timeout=120 * PATIENCE)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0] * len(ranks), said)
        return said

    def test_all_collectives(self):
        for name in PROGRAMS:
            for ranks in ("2", "3"):
                with self.subTest(name, ranks=ranks):
                    self.is_right(name, "--ranks", ranks, *MAPPED)

    def test_all_algorithms(self):
        for name, algorithms in ALGORITHMS.items():
            for algorithm in algorithms:
                with self.subTest(name, algorithm=algorithm):
                    self.is_right(name, "--ranks", "4", *MAPPED, TUTTI_ALGO=algorithm)

    def test_several_channels(self):
        for name in ("all_reduce_perf", "all_gather_perf"):
            self.is_right(name, "--ranks", "2", *MAPPED, TUTTI_CHANNELS="3")

    def test_ranks_that_are_threads(self):
        for name in PROGRAMS:
            self.is_right(name, "-t", "3", *MAPPED)

    def test_types_that_are_no_words(self):
        for kind in ("half", "f8e4m3", "double", "uint8"):
            self.is_right("all_reduce_perf", "--ranks", "3", *MAPPED, "-d", kind)

    def test_factors_and_averages(self):
        for operator in ("mulsum", "avg"):
            self.is_right("all_reduce_perf", "--ranks", "3", *MAPPED, "-o", operator)

    def test_some_ranks_have_such_memory(self):
        for name in PROGRAMS:
            with self.subTest(name):
                self.all_end_well(self.ranks_of(3, name, lambda rank: [*SIZES, "-R", str(2 * (rank % 2))]))

    def test_nobody_asks_the_kernel(self):
        """Data that is read by process_vm_readv has two places (that of the mark the other), and is refused: a job of such memory
        does without, and one of ordinary memory cannot."""
        def refused(rank):
            return lambda: refuse("process_vm_readv", 2, 2)
        for name in ("all_gather_perf", "all_reduce_perf", "alltoall_perf"):
            status, said = self.run_program(name, *SIZES, "--ranks", "2", *MAPPED, TUTTI_SINGLE_COPY="2", before=refused(0))
            self.assertEqual(status, 0, said)
            status, said = self.run_program(name, *SIZES, "--ranks", "2", TUTTI_SINGLE_COPY="2", before=refused(0))
            self.assertNotEqual(status, 0, said)

    def test_it_is_not_wanted(self):
        said = self.is_right("all_reduce_perf", "--ranks", "2", *MAPPED, TUTTI_SINGLE_COPY="0", TUTTI_DEBUG="info")
        self.assertRegex(said, r"shm to rank \d .*copied twice: TUTTI_SINGLE_COPY=0")

    def test_one_rank_alone_does_not_want_it(self):
        self.all_end_well(self.ranks_of(3, "all_reduce_perf", lambda rank: [*SIZES, *MAPPED],
                                        lambda rank: {"TUTTI_SINGLE_COPY": str(rank)}))

    def test_it_cannot_be(self):
        """A window whose file may not be kept to its user is none."""
        for one in self.all_end_well(self.ranks_of(2, "all_reduce_perf", lambda rank: [*SIZES, *MAPPED],
                                                   lambda rank: {"TUTTI_DEBUG": "info"}, lambda rank: lambda: refuse("fchmod"))):
            self.assertRegex(one, r"shm to rank \d .*this rank has none to share: cannot keep a memory file to this user")

    def test_files_are_limited(self):
        said = self.is_right("all_reduce_perf", "--ranks", "2", *MAPPED, TUTTI_DEBUG="info", before=limit_files)
        self.assertRegex(said, r"shm to rank \d .*none to share: no shared memory of \d+ bytes may be made")

    def test_one_rank_alone_cannot(self):
        for one, word in zip(self.all_end_well(self.ranks_of(
                2, "all_reduce_perf", lambda rank: [*SIZES, *MAPPED], lambda rank: {"TUTTI_DEBUG": "info"},
                lambda rank: (lambda: refuse("fchmod")) if rank == 0 else None)), ("none to share", "the peer shares none")):
            self.assertIn(word, one)

    def test_a_rank_dies_while_it_is_read(self):
        """Again and again, so that it also happens in the middle of a read."""
        for name in ("all_reduce_perf", "all_gather_perf"):
            for delay in one_copy.DELAYS:
                ranks = self.ranks_of(3, name, lambda rank: [*one_copy.LONG, *MAPPED])
                one_copy.after_the_death_of_rank_1(self, ranks, delay)

if __name__ == "__main__":
    one_copy.main(Mapped, __doc__)
