"""tutti-tune as a program: a sweep, prices that suit it, what the choices are worth, and how it ends with what it cannot read."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = os.environ["TUTTI_BIN_DIR"]


def run(*command, **variables):
    done = subprocess.run([f"{BIN}/{command[0]}", *map(str, command[1:])], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=100, env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sweep, self.profile = (pathlib.Path(folder.name, name) for name in ("sweep.json", "profile.json"))

    def tune(self, *arguments, **variables):
        return run("tutti-tune", *arguments, **variables)

    def expect_trouble(self, part, *arguments):
        code, output, errors = self.tune(*arguments)
        self.assertEqual((code, output), (2, ""), errors)
        self.assertTrue(errors.startswith("tutti-tune: "), errors)
        self.assertIn(part, errors)

    def test_from_a_sweep_to_a_job_with_its_prices(self):
        code, output, errors = self.tune("measure", "-o", self.sweep, "--operations", "all_reduce,broadcast", "--transports", "p2p,shm",
                                         "--ranks", "2,3", "--max", "512", "--rounds", "1", TUTTI_ALGO="ring")
        self.assertEqual((code, output), (0, ""), errors)
        cells = json.loads(self.sweep.read_text())["cells"]
        self.assertEqual(len(cells), 2 * 2 * 2 * 3)  # operations, transports, ranks, sizes
        self.assertEqual(set(cells[0]["times_us"]), {"ring", "tree", "oneshot", "twoshot", "halving"})
        self.assertTrue(all(len(rounds) == 1 for cell in cells for rounds in cell["times_us"].values()))

        code, output, errors = self.tune("fit", self.sweep, "-o", self.profile)
        self.assertEqual(code, 0, errors)
        self.assertEqual(output.count("24 cells: "), 2)  # before and after
        code, output, errors = self.tune("check", self.sweep, "--profile", self.profile, "--all")
        self.assertEqual((code, len(output.splitlines())), (0, 24 + 3), errors)

        code, output, errors = run("all_reduce_perf", "-t", "2", "-b", "8", "-e", "8", TUTTI_PROFILE=str(self.profile))
        self.assertEqual(code, 0, output + errors)

    def test_what_is_no_sweep(self):
        self.profile.write_text("{}")
        self.expect_trouble("no sweep, which `tutti-tune measure` writes", "check", self.profile)
        self.expect_trouble("cannot be read", "check", "/")
        self.expect_trouble("cannot be read", "check", f"{self.profile}/below/a/file")
        self.expect_trouble("cannot be read", "fit", self.sweep, "-o", self.profile)
        cell = {"operation": "all_reduce", "transport": "shm", "ranks": 2, "bytes": 8, "times_us": {"ring": [1], "tree": [2]}}
        for wrong in ({"operation": "sum"}, {"transport": "pigeons"}, {"ranks": 0}, {"bytes": "many"}, {"times_us": {"ring": []}},
                      {"times_us": {"ring": [-1]}}, {"times_us": {"spiral": [1]}}):
            self.sweep.write_text(json.dumps({"tutti_sweep": 1, "about": "a test", "cores": 2, "cells": [{**cell, **wrong}]}))
            self.expect_trouble(f"{self.sweep}: ", "check", self.sweep)

    def test_wishes_that_nothing_fulfils(self):
        self.expect_trouble("cannot write /nowhere/sweep.json", "measure", "-o", "/nowhere/sweep.json")
        self.expect_trouble("gather: no operation with algorithms to choose from; there are all_reduce,", "measure", "-o", self.sweep,
                            "--operations", "gather")
        self.expect_trouble("--ranks", "measure", "-o", self.sweep, "--ranks", "1")
        self.expect_trouble("--transports", "measure", "-o", self.sweep, "--transports", "pigeons")
        self.expect_trouble("nothing would be measured", "measure", "-o", self.sweep, "--min", "64", "--max", "8")

    def test_a_program_that_fails_is_shown(self):
        code, _, errors = self.tune("measure", "-o", self.sweep, "--operations", "all_reduce", "--ranks", "2", "--max", "8",
                                    TUTTI_VERIFY="many")
        self.assertEqual(code, 2)
        self.assertIn("all_reduce_perf --nthreads 2", errors)
        code, _, errors = self.tune("measure", "-o", self.sweep, TMPDIR="/nowhere")
        self.assertEqual(code, 2)
        self.assertIn("no folder for temporary files (TMPDIR)", errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
