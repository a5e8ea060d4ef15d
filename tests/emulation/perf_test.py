"""The measuring programs with --device cuda, on the emulated GPU: what they print, that they verify, and what they refuse."""
import contextlib
import os
import re
import signal
import subprocess
import time
import unittest

PROGRAMS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
            "gatherv", "scatterv", "sendrecv")
FOLDER = os.path.join(os.environ["TUTTI_BIN_DIR"], "emulated")
# The emulation is slow: few blocks, small slots.
SETTINGS = {"TUTTI_GPU_BUFFER_MIB": "1", "TUTTI_CHANNELS": "2"}
# What the sanitizers multiply times by: with them, smaller sizes do.
PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
if PATIENCE > 1:  # under a sanitizer: a collective of each kind
    PROGRAMS = ("all_reduce", "alltoall", "broadcast", "sendrecv")
LARGEST, SIZES = ("64K", 5) if PATIENCE == 1 else ("512", 3)
ON_GPUS = ("--device", "cuda", "-b", "8", "-e", LARGEST, "-f", "8", "-n", "2", "-w", "1")
GRID = ("-t", "1", "-g", "4")


@contextlib.contextmanager
def settings(**values):
    before = dict(SETTINGS)
    SETTINGS.update(values)
    try:
        yield
    finally:
        SETTINGS.clear()
        SETTINGS.update(before)


def run(program, *arguments):
    command = [os.path.join(FOLDER, program + "_perf"), *arguments]
    return subprocess.run(command, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=120 * PATIENCE)


class OnTheEmulatedGpu(unittest.TestCase):
    def good(self, program, *arguments, ranks=4, lines=SIZES):
        outcome = run(program, *arguments)
        told = outcome.stdout + outcome.stderr
        self.assertEqual(outcome.returncode, 0, told)
        self.assertIn("# Out of bounds values : 0 OK\n", outcome.stdout, told)
        rank_lines = re.findall(r"^#  Rank +\d+ Group  0 Pid +\d+ on +\S+ device +0 \[[0-9a-f:]{10}\] \S.*$",
                                outcome.stdout, re.MULTILINE)
        self.assertEqual(len(rank_lines), ranks, told)
        rows = re.findall(r"^ +\d+ .*$", outcome.stdout, re.MULTILINE)
        self.assertEqual(len(rows), lines, told)
        self.assertNotIn("N/A", "".join(rows) if program != "sendrecv" else "", told)
        return outcome

    def bad(self, text, program, *arguments):
        outcome = run(program, *arguments)
        self.assertNotEqual(outcome.returncode, 0, outcome.stdout)
        self.assertRegex(outcome.stderr, text)

    def test_every_program(self):
        for program in PROGRAMS:
            with self.subTest(program):
                self.good(program, *ON_GPUS, *GRID)

    def test_graphs(self):
        outcome = self.good("all_reduce", *ON_GPUS, *GRID, "-G", "2")
        self.assertIn(" graph: 2 ", outcome.stdout)

    def test_threads_and_groups(self):
        self.good("all_reduce", *ON_GPUS, "-t", "2", "-g", "2")
        self.good("alltoall", *ON_GPUS, "-t", "2", "-g", "2", "-G", "2")

    def test_default_stream(self):
        self.good("all_gather", *ON_GPUS, *GRID, "-y", "1")

    def test_every_wait(self):
        for blocking in ("1", "2", "3") if PATIENCE == 1 else ("3",):
            with self.subTest(blocking):
                self.good("reduce_scatter", *ON_GPUS, *GRID, "-z", blocking, "-m", "2")

    def test_registered_and_unaligned(self):
        self.good("all_reduce", *ON_GPUS, *GRID, "-R", "1", "-u", "1", "-d", "bfloat16", "-o", "mulsum")

    def test_every_operator_of_bool_and_int16(self):
        small = ("--device", "cuda", "-b", "512", "-e", "512", "-n", "2", "-w", "1")
        for name, operators in (("bool", 7), ("int16", 9)):
            with self.subTest(name):
                self.good("reduce", *small, *GRID, "-d", name, "-o", "all", lines=operators)

    def test_memory_of_the_library(self):
        self.good("all_reduce", *ON_GPUS, *GRID, "-R", "2", "-u", "1")

    def test_a_planted_error_is_found(self):
        outcome = run("all_reduce", *ON_GPUS, *GRID, "--plant-error")
        self.assertNotEqual(outcome.returncode, 0, outcome.stdout)
        self.assertRegex(outcome.stdout, r"\n# Out of bounds values : [1-9]\d* FAILED\n")

    def test_refusals(self):
        self.bad("share a GPU", "all_reduce", *ON_GPUS, "-t", "2", "-g", "1", "-y", "1")
        self.bad("-G", "all_reduce", "-g", "2", "-G", "1")
        self.bad("-G", "all_reduce", *ON_GPUS, "-g", "2", "-G", "1", "-I", "1")
        # Kernels of two processes on one GPU: the library itself says why that cannot be.
        with settings(TUTTI_ENGINE="kernel"):
            self.bad("TUTTI_ENGINE=kernel", "all_reduce", *ON_GPUS, "--ranks", "2")

    def test_processes_share_the_gpu(self):
        for ranks in (2, 4, 8) if PATIENCE == 1 else (3,):
            with self.subTest(ranks):
                self.good("all_reduce", *ON_GPUS, "--ranks", str(ranks), ranks=ranks)
        for program in PROGRAMS[1:] if PATIENCE == 1 else ("alltoall",):
            with self.subTest(program):
                self.good(program, *ON_GPUS, "--ranks", "3", ranks=3)

    def test_processes_of_two_ranks_and_graphs_share_the_gpu(self):
        self.good("all_reduce", *ON_GPUS, "--ranks", "2", "-g", "2", ranks=4)
        self.good("alltoall", *ON_GPUS, "--ranks", "2", "-t", "2", ranks=4)
        self.good("all_reduce", *ON_GPUS, "--ranks", "4", "-G", "2", ranks=4)

    def test_a_process_that_dies_is_named_by_those_that_wait_for_it(self):
        command = [os.path.join(FOLDER, "all_reduce_perf"), "--device", "cuda", "-b", "64K", "-e", "64K", "-n", "1000000",
                   "--ranks", "3"]
        with subprocess.Popen(command, env={**os.environ, **SETTINGS}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as program:
            try:
                told, victim = "", None
                for line in program.stdout:
                    told += line
                    rank = re.match(r"#  Rank +1 .* Pid +(\d+) ", line)
                    victim = int(rank[1]) if rank else victim
                    if "(us)" in line:  # what is measured has begun
                        time.sleep(1)
                        os.kill(victim, signal.SIGKILL)
                told += program.communicate(timeout=PATIENCE)[0] or ""
            finally:
                program.kill()
        self.assertNotEqual(program.returncode, 0, told)
        for rank in (0, 2):
            self.assertRegex(told, rf"rank {rank}: .*rank 1 \(host \S+, pid {victim}\) left")
        if PATIENCE == 1:  # a sanitizer may take longer than the three seconds that the program grants its ranks
            self.assertNotIn("still running", told)


if __name__ == "__main__":
    unittest.main()
