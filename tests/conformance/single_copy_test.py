#!/usr/bin/env python3
"""Long messages that ranks of one host read where they lie in each other's memory, or that TCP takes from there (TUTTI_SINGLE_COPY):
right results, in the same words where that is refused, and an error where a rank dies meanwhile.

    tests/conformance/single_copy_test.py --bin build/release/bin
"""
import os
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
SIZES = ["-b", "60004", "-e", "1920128", "-f", "32", "-n", "2", "-w", "0", "-c", "1"]


def is_permitted():
    """Whether children of one parent may read each other: yama's scope 1 refuses, 0 does not."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    return os.geteuid() == 0 or not scope.exists() or scope.read_text().strip() == "0"


class SingleCopy(unittest.TestCase):
    BIN = Path(".")

    def run_program(self, name, *words, before=None, **variables):
        done = subprocess.run([self.BIN / name, *words], env={**os.environ, "TUTTI_SINGLE_COPY": "2", **variables},
                              capture_output=True, text=True, preexec_fn=before, timeout=240 * PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def is_right(self, name, *words, **more):
        status, said = self.run_program(name, *SIZES, *words, **more)
        self.assertEqual(status, 0, f"{name} {words}\n{said}")
        self.assertIn("Out of bounds values : 0 OK", said)
        return said

    def test_all_collectives(self):
        for name in PROGRAMS:
            for ranks in ("2", "3"):
                with self.subTest(name, ranks=ranks):
                    self.is_right(name, "--ranks", ranks)

    def test_all_algorithms(self):
        for name, algorithms in ALGORITHMS.items():
            for algorithm in algorithms:
                with self.subTest(name, algorithm=algorithm):
                    self.is_right(name, "--ranks", "4", TUTTI_ALGO=algorithm)

    def test_sums_of_pairs(self):
        for name in ("all_reduce_perf", "reduce_scatter_perf", "reduce_perf"):
            for kind in ("float", "bfloat16", "uint8", "double"):
                with self.subTest(name, kind=kind):
                    self.is_right(name, "--ranks", "2", "-d", kind, TUTTI_SINGLE_COPY="2")

    def test_several_channels(self):
        self.is_right("all_gather_perf", "--ranks", "2", TUTTI_CHANNELS="3")

    def test_ranks_that_are_threads(self):
        for name in ("all_gather_perf", "all_reduce_perf", "broadcast_perf", "sendrecv_perf"):
            self.is_right(name, "-t", "3")

    def test_what_is_faster_is_tried(self):
        self.is_right("all_gather_perf", "--ranks", "2", "-n", "120", TUTTI_SINGLE_COPY="1")

    def test_memory_is_read(self):
        """Each read of data has two places, that of the data and that of the mark (set-up reads the mark alone): refused, a job that
        reads cannot end well. So is a process that may not be read any more."""
        if not is_permitted():
            self.skipTest("ranks may not read each other here (kernel.yama.ptrace_scope)")
        for name in ("all_gather_perf", "all_reduce_perf", "alltoall_perf"):
            for setting, dies in (("2", True), ("1", True), ("0", False)):
                status, said = self.run_program(name, *SIZES, "--ranks", "2", "-n", "60", TUTTI_SINGLE_COPY=setting,
                                                before=lambda: refuse("process_vm_readv", 2, 2))
                self.assertEqual(status != 0, dies, f"{name} {setting}\n{said}")
                if dies:
                    self.assertRegex(said, r"cut off.*process \d+ may not be read .*seccomp")

    def test_it_is_not_wanted(self):
        said = self.is_right("all_gather_perf", "--ranks", "2", TUTTI_SINGLE_COPY="0", TUTTI_DEBUG="info")
        self.assertRegex(said, r"shm to rank \d .*copied twice: TUTTI_SINGLE_COPY=0")

    def test_it_is_refused(self):
        said = self.is_right("all_gather_perf", "--ranks", "2", TUTTI_DEBUG="info", before=lambda: refuse("process_vm_readv"))
        self.assertRegex(said, r"shm to rank \d .*copied twice: process \d+ may not be read .*seccomp")

    def all_end_well(self, of_all, of_each):
        place = {"TUTTI_SIZE": str(len(of_each)), "TUTTI_ROOT": "127.0.0.1:40187", "TUTTI_SECRET": os.urandom(16).hex()}
        ranks = [subprocess.Popen([self.BIN / "all_gather_perf", *SIZES], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**os.environ, **place, "TUTTI_RANK": str(rank), **of_all, **own})
                 for rank, own in enumerate(of_each)]
        said = [rank.communicate(timeout=120 * PATIENCE)[0] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0] * len(ranks), said)
        return said

    def test_one_rank_alone_does_not_want_it(self):
        for one in self.all_end_well({"TUTTI_DEBUG": "info"}, [{"TUTTI_SINGLE_COPY": str(2 * rank)} for rank in range(2)]):
            self.assertIn("copied twice: TUTTI_SINGLE_COPY=0", one)

    def test_over_tcp(self):
        for name in PROGRAMS:
            for ranks in ("2", "3", "4"):
                with self.subTest(name, ranks=ranks):
                    self.is_right(name, "--ranks", ranks, TUTTI_TRANSPORT="tcp")

    def test_over_tcp_all_algorithms(self):
        for name, algorithms in ALGORITHMS.items():
            for algorithm in algorithms:
                with self.subTest(name, algorithm=algorithm):
                    self.is_right(name, "--ranks", "4", TUTTI_ALGO=algorithm, TUTTI_TRANSPORT="tcp")

    def test_over_sealed_tcp(self):
        for name in PROGRAMS:
            self.is_right(name, "--ranks", "3", TUTTI_TRANSPORT="tcp", TUTTI_ENCRYPT="1")

    def test_over_tcp_nobody_reads_a_peer(self):
        self.is_right("all_gather_perf", "--ranks", "2", TUTTI_TRANSPORT="tcp", before=lambda: refuse("process_vm_readv"))

    def test_over_tcp_with_several_channels(self):
        self.is_right("all_reduce_perf", "--ranks", "3", TUTTI_TRANSPORT="tcp", TUTTI_CHANNELS="3")

    def test_over_tcp_one_rank_alone_does_not_want_it(self):
        self.all_end_well({"TUTTI_TRANSPORT": "tcp"}, [{"TUTTI_SINGLE_COPY": str(rank)} for rank in range(2)])

    def test_a_rank_dies_while_it_is_read(self):
        self.a_rank_dies()

    def test_a_rank_dies_over_tcp(self):
        self.a_rank_dies(TUTTI_TRANSPORT="tcp")

    def a_rank_dies(self, **variables):
        """Again and again, so that it also happens in the middle of a read."""
        for delay in one_copy.DELAYS:
            place = {"TUTTI_SIZE": "3", "TUTTI_ROOT": "127.0.0.1:40189", "TUTTI_SECRET": os.urandom(16).hex()}
            ranks = [subprocess.Popen([self.BIN / "all_gather_perf", *one_copy.LONG],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env={**os.environ, **place, "TUTTI_RANK": str(rank), "TUTTI_SINGLE_COPY": "2", **variables})
                     for rank in range(3)]
            one_copy.after_the_death_of_rank_1(self, ranks, delay)

if __name__ == "__main__":
    one_copy.main(SingleCopy, __doc__)
