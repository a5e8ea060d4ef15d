"""tutti-tune as a program: a sweep, prices that suit it, what the choices are worth, and how it ends with what it cannot read."""
import json
import os
import pathlib
import signal
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
        self.assertEqual(set(cells[0]["times_us"]), {"ring", "tree", "oneshot", "twoshot", "halving", "doubling", "twopass"})
        self.assertTrue(all(len(rounds) == 1 for cell in cells for rounds in cell["times_us"].values()))

        code, output, errors = self.tune("fit", self.sweep, "-o", self.profile)
        self.assertEqual(code, 0, errors)
        self.assertEqual(output.count("24 cells: "), 2)  # before and after
        code, output, errors = self.tune("check", self.sweep, "--profile", self.profile, "--all")
        self.assertEqual((code, len(output.splitlines())), (0, 24 + 3), errors)

        code, output, errors = run("all_reduce_perf", "-t", "2", "-b", "8", "-e", "8", TUTTI_PROFILE=str(self.profile))
        self.assertEqual(code, 0, output + errors)

    def sweep_of(self, cells):
        times = {"ring": [20], "halving": [10]}
        cells = [{"operation": operation, "transport": transport, "ranks": ranks, "bytes": 64, "times_us": times}
                 for operation, transport, ranks in cells]
        self.sweep.write_text(json.dumps({"tutti_sweep": 1, "about": "made up", "cores": 2, "cells": cells}))

    def test_choices_are_judged_by_new_times(self):
        self.sweep_of((("all_reduce", "p2p", 2), ("all_gather", "shm", 2), ("reduce_scatter", "tcp", 2), ("all_reduce", "shm", 3)))
        self.profile.write_text(json.dumps({"tutti_profile": 1, "about": "a test", "prices": {}}))
        lines = self.sweep.with_name("lines")
        code, output, errors = self.tune("duel", self.sweep, "--profile", self.profile, "--seconds", "0", "--all", "-o", lines,
                                         TUTTI_ALGO="twoshot", TUTTI_RANK="7")
        self.assertEqual(code, 0, errors)
        self.assertEqual(len(output.splitlines()), 1 + 4 + 1, output)
        self.assertIn("\n4 cells: ", output)
        self.assertEqual(errors.count("/4] "), 4)
        outcomes = [json.loads(line) for line in lines.read_text().splitlines()]
        for outcome in outcomes:  # the library's own choice, against others, by new times
            self.assertNotIn(outcome["choice"], outcome["ratios"])
            for ratios in outcome["ratios"].values():
                self.assertEqual(len(ratios), 10)
                self.assertTrue(all(ratio > 0 for ratio in ratios))
        self.assertNotEqual({outcome["choice"] for outcome in outcomes}, {"twoshot"})
        self.amended(lines, outcomes[0])

    def amended(self, lines, outcome):
        """Where the choice is said to have lost by far, the next profile does not take it."""
        opponent = next(iter(outcome["ratios"]))
        other = {"ring": "halving", "halving": "ring"}[opponent]
        lines.write_text(json.dumps(outcome | {"choice": other, "ratios": {opponent: [3.0] * 10}}) + "\n")
        code, _, errors = self.tune("fit", self.sweep, "--duel", lines, "-o", self.profile)
        self.assertEqual(code, 0, errors)
        measured = json.loads(self.profile.read_text())["measured"]
        first = next(one for one in measured if one["operation"] == "all_reduce" and one["transport"] == "p2p")
        self.assertLess(first["us"][opponent][0], first["us"][other][0])
        lines.write_text("nonsense\n")
        self.expect_trouble("line 1: this is no outcome of a match", "fit", self.sweep, "--duel", lines, "-o", self.profile)

    def test_duels_that_say_nothing_of_the_sweep(self):
        self.sweep_of([("all_reduce", "shm", 2)])
        lines = self.sweep.with_name("lines")
        outcome = {"operation": "all_reduce", "transport": "shm", "ranks": 2, "bytes": 64, "choice": "ring", "ratios": {"halving": [2.0] * 10}}
        for text, part in (("", "is empty: no cell was judged"),
                           (json.dumps(outcome | {"ranks": 3}), "it is about another sweep"),
                           (json.dumps(outcome | {"ratios": {"halving": [-1.0]}}), "line 1: this is no outcome of a match"),
                           (json.dumps(outcome | {"ratios": {"halving": [1e300]}}), "line 1: this is no outcome of a match")):
            lines.write_text(text)
            self.expect_trouble(part, "fit", self.sweep, "--duel", lines, "-o", self.profile)
        self.expect_trouble("cannot be read", "fit", self.sweep, "--duel", self.sweep.parent, "-o", self.profile)
        self.assertFalse(self.profile.exists())
        lines.write_text(json.dumps(outcome) + "\n")
        code, _, errors = self.tune("fit", self.sweep, "--duel", lines, "-o", self.profile)
        self.assertEqual(code, 0, errors)

    def test_a_duel_that_is_cut_keeps_what_it_played(self):
        self.sweep_of([("all_reduce", "p2p", 2), ("all_gather", "p2p", 2)])
        sweep, lines = json.loads(self.sweep.read_text()), self.sweep.with_name("lines")
        sweep["cells"][1]["bytes"] = 1 << 24  # its rounds take long, so it is still played when the first has been told
        self.sweep.write_text(json.dumps(sweep))
        with subprocess.Popen([f"{BIN}/tutti-tune", "duel", self.sweep, "--seconds", "600", "-o", lines], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as duel:
            told = duel.stderr.readline()
            os.killpg(duel.pid, signal.SIGINT)
            duel.wait(timeout=60)
        self.assertTrue(told.startswith("[1/2] "), told)
        self.assertEqual(json.loads(lines.read_text().splitlines()[0])["operation"], "all_reduce")

    def test_rooted_operations_have_a_barrier_behind_them_and_cells_are_picked(self):
        self.sweep_of((operation, "shm", 2) for operation in ("broadcast", "reduce", "all_reduce"))
        times = {"ring": [20], "tree": [10]}
        sweep = json.loads(self.sweep.read_text())
        for cell in sweep["cells"]:
            cell["times_us"] = times
        self.sweep.write_text(json.dumps(sweep))
        code, output, errors = self.tune("duel", self.sweep, "--cells", "^(broadcast|reduce) ", "--seconds", "0")
        self.assertEqual(code, 0, errors)
        self.assertIn("2 cells: ", output)

    def test_duels_that_cannot_be(self):
        self.sweep_of([("all_reduce", "shm", 2)])
        self.expect_trouble("no cell of the sweep is called so; the first is called 'all_reduce shm 2 64'", "duel", self.sweep, "--cells", "gather")
        self.expect_trouble("--cells (", "duel", self.sweep, "--cells", "(")
        self.expect_trouble("cannot be read", "duel", f"{self.sweep}.not")
        self.expect_trouble("/nowhere", "duel", self.sweep, "--profile", "/nowhere/profile.json")
        self.expect_trouble("cannot write /nowhere/lines", "duel", self.sweep, "-o", "/nowhere/lines")
        # What a rank says when it fails is shown.
        sweep = json.loads(self.sweep.read_text())
        sweep["cells"][0]["bytes"] = 1 << 44
        self.sweep.write_text(json.dumps(sweep))
        code, output, errors = self.tune("duel", self.sweep)
        self.assertEqual((code, output), (2, ""), errors)
        self.assertIn("the duel of 2 ranks over shm failed:", errors)

    def test_what_is_no_sweep(self):
        self.profile.write_text("{}")
        self.expect_trouble("no sweep, which `tutti-tune measure` writes", "check", self.profile)
        self.expect_trouble("cannot be read", "check", "/")
        self.expect_trouble("cannot be read", "check", f"{self.profile}/below/a/file")
        self.expect_trouble("cannot be read", "fit", self.sweep, "-o", self.profile)
        cell = {"operation": "all_reduce", "transport": "shm", "ranks": 2, "bytes": 8, "times_us": {"ring": [1], "tree": [2]}}
        for wrong in ({"operation": "sum"}, {"transport": "pigeons"}, {"ranks": 0}, {"bytes": "many"}, {"times_us": {"ring": []}},
                      {"times_us": {"ring": [-1]}}, {"times_us": {"spiral": [1]}},
                      {"operation": "reduce", "times_us": {"twoshot": [1]}}, {"bytes": 0}, {"bytes": -8}, {"bytes": 1 << 61},
                      {"bytes": (1 << 64) - 8}, {"bytes": 1.5}, {"ranks": 2.5}, {"ranks": 1 << 40}, {"times_us": {}},
                      {"times_us": {"ring": ["1"]}}):
            self.sweep.write_text(json.dumps({"tutti_sweep": 1, "about": "a test", "cores": 2, "cells": [{**cell, **wrong}]}))
            self.expect_trouble(f"{self.sweep}: cell 1: ", "check", self.sweep)
        for cells in ([cell, cell], [cell, "none"], [cell, None]):
            self.sweep.write_text(json.dumps({"tutti_sweep": 1, "about": "a test", "cores": 2, "cells": cells}))
            self.expect_trouble(f"{self.sweep}: cell 2: ", "check", self.sweep)
        for cores in (0, -1, 1.5, 10**20, "2"):
            self.sweep.write_text(json.dumps({"tutti_sweep": 1, "about": "a test", "cores": cores, "cells": [cell]}))
            self.expect_trouble("cores is to be a whole number from 1 to 65536", "check", self.sweep)

    def test_what_is_no_profile(self):
        self.sweep_of([("all_reduce", "shm", 2)])
        group = {"operation": "all_reduce", "transport": "shm", "ranks": 2, "ranks_per_core": 1, "bytes": [8], "us": {"ring": ["1"]}}
        self.profile.write_text(json.dumps({"tutti_profile": 1, "about": "a test", "prices": {}, "measured": [group]}))
        self.expect_trouble("needs for ring as many times above 0 as there are bytes\n", "check", self.sweep, "--profile", self.profile)
        self.profile.write_text("")
        self.expect_trouble("profile.json: is empty", "check", self.sweep, "--profile", self.profile)
        self.expect_trouble("can not be read: Input/output error", "check", self.sweep, "--profile", "/proc/self/mem")

    def test_wishes_that_nothing_fulfils(self):
        self.expect_trouble("cannot write /nowhere/sweep.json", "measure", "-o", "/nowhere/sweep.json")
        self.expect_trouble("gather: no operation with algorithms to choose from; there are all_reduce,", "measure", "-o", self.sweep,
                            "--operations", "gather")
        self.expect_trouble("--ranks", "measure", "-o", self.sweep, "--ranks", "1")
        self.expect_trouble("--transports", "measure", "-o", self.sweep, "--transports", "pigeons")
        self.expect_trouble("nothing would be measured", "measure", "-o", self.sweep, "--min", "64", "--max", "8")

    def test_a_measurement_that_is_cut_leaves_nothing_behind(self):
        folder = self.sweep.parent / "temporary"
        folder.mkdir()
        with subprocess.Popen([f"{BIN}/tutti-tune", "measure", "-o", self.sweep, "--operations", "all_reduce", "--transports", "p2p", "--ranks",
                               "2", "--max", "8", "--rounds", "1000"], env={**os.environ, "TMPDIR": str(folder)}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True) as measure:
            told = [measure.stderr.readline() for _ in range(2)]  # so the programs of one step have run
            self.assertNotEqual(list(folder.iterdir()), [], told)
            os.killpg(measure.pid, signal.SIGINT)
            self.assertEqual(measure.wait(timeout=60), -signal.SIGINT)
        self.assertEqual(list(folder.iterdir()), [])
        self.assertFalse(self.sweep.exists())

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
