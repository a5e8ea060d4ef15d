"""The measuring programs with --device cuda, on the emulated GPU: what they print, that they verify, and what they refuse."""
import os
import re
import subprocess
import unittest

PROGRAMS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "gather", "scatter",
            "sendrecv")
FOLDER = os.path.join(os.environ["TUTTI_BIN_DIR"], "emulated")
# The emulation is slow: few blocks, small slots.
SETTINGS = {"TUTTI_GPU_BUFFER_MIB": "1", "TUTTI_CHANNELS": "2"}
# What the sanitizers multiply times by: with them, smaller sizes do.
PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
LARGEST, SIZES = ("64K", 5) if PATIENCE == 1 else ("512", 3)
ON_GPUS = ("--device", "cuda", "-b", "8", "-e", LARGEST, "-f", "8", "-n", "2", "-w", "1")
GRID = ("-t", "1", "-g", "4")


def run(program, *arguments):
    command = [os.path.join(FOLDER, program + "_perf"), *arguments]
    return subprocess.run(command, env={**os.environ, **SETTINGS}, capture_output=True, text=True, timeout=120 * PATIENCE)


class OnTheEmulatedGpu(unittest.TestCase):
    def good(self, program, *arguments, ranks=4):
        outcome = run(program, *arguments)
        told = outcome.stdout + outcome.stderr
        self.assertEqual(outcome.returncode, 0, told)
        self.assertIn("# Out of bounds values : 0 OK\n", outcome.stdout, told)
        rank_lines = re.findall(r"^#  Rank +\d+ Group  0 Pid +\d+ on +\S+ device +0 \[[0-9a-f:]{10}\] \S.*$",
                                outcome.stdout, re.MULTILINE)
        self.assertEqual(len(rank_lines), ranks, told)
        rows = re.findall(r"^ +\d+ .*$", outcome.stdout, re.MULTILINE)
        self.assertEqual(len(rows), SIZES, told)
        self.assertNotIn("N/A", "".join(rows) if program not in ("alltoall", "sendrecv") else "", told)
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
        for blocking in ("1", "2", "3"):
            with self.subTest(blocking):
                self.good("reduce_scatter", *ON_GPUS, *GRID, "-z", blocking, "-m", "2")

    def test_registered_and_unaligned(self):
        self.good("all_reduce", *ON_GPUS, *GRID, "-R", "1", "-u", "1", "-d", "bfloat16", "-o", "mulsum")

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
        # Two processes on one GPU: the library itself says why that cannot be.
        self.bad("GPU", "all_reduce", *ON_GPUS, "--ranks", "2")


if __name__ == "__main__":
    unittest.main()
