"""Tables and pictures of results that were made up, and what is said of files that are none."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = os.environ["TUTTI_BIN_DIR"]
sys.path.insert(0, str(ROOT / "bench/compare/lib"))
import analysis  # noqa: E402  pylint: disable=wrong-import-position
import plots  # noqa: E402  pylint: disable=wrong-import-position


def row(system, config, microseconds, **more):
    return {"system": system, "config": config, "op": "all_reduce", "type": "float", "transport": "shm", "ranks": 2, "bytes": 8,
            "in_place": False, "memory": "ordinary", "busy": False, "median_us": microseconds, "version": f"{system} 1", **more}


def limit(config, operation, microseconds, **more):
    return row("limit", config, microseconds, op=operation, **more)


def command(*arguments):
    done = subprocess.run([str(ROOT / "bench/compare" / arguments[0]), *map(str, arguments[1:])], capture_output=True, text=True,
                          check=False, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


class WithFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, rows):
        path = self.folder / name
        path.write_text(rows if isinstance(rows, str) else json.dumps(rows), encoding="utf-8")
        return path


class Tables(unittest.TestCase):
    def test_the_best_peer_of_each_cell(self):
        text = analysis.report([row("tutti", "default", 2.0), row("ucc", "cma", 5.0), row("openmpi", "vader", 3.0)])
        self.assertIn("| all_reduce | 2.00 (3.00 Open MPI vader) **1.50** |", text)
        self.assertNotIn("Below", text)

    def test_the_mean_is_geometric_and_by_place(self):
        rows = [row("tutti", "default", 1.0), row("ucc", "cma", 4.0), row("tutti", "default", 1.0, bytes=64),
                row("ucc", "cma", 1.0, bytes=64), row("tutti", "default", 10.0, transport="tcp", ranks=4),
                row("ucc", "tcp", 30.0, transport="tcp", ranks=4)]
        text = analysis.report(rows)
        self.assertIn("| Shared memory, 2 ranks | ordinary | 2.00 | 1.00 | 1 of 2 |", text)
        self.assertIn("| TCP over loopback, 4 ranks | ordinary | 3.00 | 3.00 | 0 of 1 |", text)

    def test_cells_below_the_aim_are_listed_the_worst_first(self):
        rows = [row("tutti", "default", 10.0), row("ucc", "cma", 11.0), row("tutti", "default", 10.0, op="broadcast"),
                row("ucc", "cma", 5.0, op="broadcast"), row("tutti", "default", 1.0, bytes=64), row("ucc", "cma", 1.2, bytes=64)]
        below = analysis.report(rows).partition("## Below 1.2")[2].strip().splitlines()
        self.assertEqual(below, ["- 0.50: Shared memory, 2 ranks: broadcast, 8 B: 10.0 us, UCC cma 5.00 us",
                                 "- 1.10: Shared memory, 2 ranks: all_reduce, 8 B: 10.0 us, UCC cma 11.0 us"])

    def test_rounds_are_compared_one_by_one(self):
        text = analysis.report([row("tutti", "default", 2.0, rounds_us=[1.0, 2.0, 10.0]),
                                row("ucc", "cma", 4.0, rounds_us=[2.0, 4.0, 5.0]), row("ucc", "posix", 2.0, rounds_us=[3.0, None, None])])
        self.assertIn("| all_reduce | 2.00 (4.00 UCC cma) **2.00** |", text)

    def test_what_had_one_kind_of_minute_counts(self):
        ours = row("tutti", "default", 4.0, rounds_us=[2.0, 4.0, 5.0], lines_us=[0.15, 0.5, 0.5])
        peer = row("ucc", "cma", 3.0, rounds_us=[3.0, 3.2, 6.0], lines_us=[0.15, 0.16, 0.9])
        self.assertEqual(analysis.pair_of(ours, peer), analysis.Pair(4.0, 3.0, "UCC cma", 1.55, False))
        peer["lines_us"] = [0.9, 0.9, 0.9]
        self.assertEqual(analysis.pair_of(ours, peer), analysis.Pair(4.0, 3.0, "UCC cma", 1.2, True))
        text = analysis.report([ours, peer])
        self.assertIn("**1.20**† |", text)
        self.assertIn("took 0.15 to 0.90 us, a tenth of the time up to 0.15 and a tenth at least 0.90; †: 1 cells", text)

    def test_like_minutes_count_before_others(self):
        ours = row("tutti", "default", 4.0, rounds_us=[4.0, 4.0], lines_us=[0.5, 0.5])
        near = row("openmpi", "vader", 2.0, rounds_us=[2.0, None], lines_us=[0.1, None])
        text = analysis.report([ours, near, row("ucc", "cma", 5.0, rounds_us=[5.0, 5.0], lines_us=[0.5, None])])
        self.assertIn("(5.00 UCC cma) **1.25** |", text)
        self.assertIn("- 0.50†: Shared memory, 2 ranks: all_reduce, 8 B: 4.00 us, Open MPI vader 2.00 us", analysis.report([ours, near]))

    def test_who_does_not_tell_is_compared_by_rounds(self):
        ours = row("tutti", "default", 2.0, rounds_us=[1.0, 4.0], lines_us=[0.1, 0.5])
        self.assertEqual(analysis.pair_of(ours, row("gloo", "ring", 4.0, rounds_us=[2.0, 8.0], lines_us=[None, None])),
                         analysis.Pair(2.0, 4.0, "Gloo ring", 2.0, False))

    def test_old_files_know_less(self):
        for mine, theirs in (({}, {}), ({"rounds_us": [6.0, 2.0, 2.0]}, {"rounds_us": [3.0, 3.0]}), ({"rounds_us": [6.0, 2.0, 2.0]}, {}),
                             ({"rounds_us": [2.0], "lines_us": [0.2]}, {"rounds_us": [3.0]}), ({}, {"rounds_us": [None]})):
            with self.subTest((mine, theirs)):
                self.assertEqual(analysis.pair_of(row("tutti", "default", 2.0, **mine), row("ucc", "cma", 3.0, **theirs)),
                                 analysis.Pair(2.0, 3.0, "UCC cma", 1.5, False))

    def test_registered_memory_is_beside_the_same_peers(self):
        text = analysis.report([row("tutti", "default", 2.0), row("tutti", "registered", 1.0, memory="registered"),
                                row("ucc", "cma", 3.0)])
        self.assertIn("| all_reduce | 2.00 (3.00 UCC cma) **1.50** |", text)
        self.assertIn("| all_reduce, registered | 1.00 (3.00 UCC cma) **3.00** |", text)
        self.assertIn("| Shared memory, 2 ranks | registered | 3.00 |", text)

    def test_what_may_not_be_compared_is_not(self):
        other = {"in_place": True, "type": "half", "busy": True, "ranks": 4, "transport": "tcp", "bytes": 64, "op": "broadcast"}
        for name, value in other.items():
            with self.subTest(name):
                tables = analysis.pairs_of([row("tutti", "default", 2.0), row("ucc", "cma", 3.0, **{name: value})])
                self.assertEqual([pair.who for table in tables.values() for cells in table.values() for pair in cells.values()], [""])

    def test_tutti_alone(self):
        text = analysis.report([row("tutti", "default", 2.0), row("tutti", "default", 4.0, bytes=1 << 20)])
        self.assertIn("|  | 8 B | 1 MiB |", text)
        self.assertIn("| all_reduce | 2.00 | 4.00 |", text)

    def test_limits(self):
        rows = [row("tutti", "default", 2.0), limit("direct map", "all_reduce", 0.5), limit("memcpy", "memcpy", 1.0, bytes=1 << 20)]
        text = analysis.report(rows)
        self.assertIn("| all_reduce, limit | 0.50 |", text)
        self.assertIn("- memcpy, 2 threads, 1 MiB: 1.00 us, 1048.58 GB/s", text)

    def test_registered_memory_beside_the_direct_map(self):
        long = {"bytes": 64 << 10}
        rows = [row("tutti", "registered", 3.0, memory="registered", rounds_us=[2.0, 6.0], lines_us=[0.1, 0.5], **long),
                row("tutti", "default", 9.0, **long), row("tutti", "registered", 1.0, memory="registered"),
                limit("direct map", "all_reduce", 0.5), limit("direct map", "all_reduce", 2.0, rounds_us=[4.0, 1.0], lines_us=[0.5, 0.1], **long)]
        text = analysis.report(rows)
        self.assertIn("Registered memory in units of the direct map, out of place:\n\n|  | 64 KiB |\n|---|---|\n| all_reduce | 1.75 |", text)
        self.assertNotIn("units of the direct map", analysis.report(rows[1:]))

    def test_a_wire_has_a_rate_and_a_shortest_time(self):
        sockets = [limit("socket", "exchange", 5.0, transport="tcp"), limit("socket", "exchange", 1000.0, transport="tcp", bytes=1000000),
                   limit("socket", "stream", 2.0, transport="tcp")]
        between = [{**one, "transport": "namespaces", "median_us": 2 * one["median_us"]} for one in sockets]
        tcp = analysis.Place("tcp", 4, "float", False)
        # 2000 bytes a microsecond; an all-reduce of 4 ranks moves 6 times its message
        self.assertEqual(analysis.wire_limit(sockets, "all_reduce", tcp, 1000000), 3000.0)
        self.assertEqual(analysis.wire_limit(sockets, "all_gather", tcp, 1000000), 1500.0)
        self.assertEqual(analysis.wire_limit(sockets, "all_reduce", tcp, 8), 5.0)
        self.assertEqual(analysis.wire_limit(sockets, "broadcast", tcp, 8), 2.0)
        self.assertIsNone(analysis.wire_limit([], "all_reduce", tcp, 8))
        self.assertEqual(analysis.wire_limit(sockets + between, "all_reduce", tcp, 8), 5.0)
        self.assertEqual(analysis.wire_limit(sockets + between, "all_reduce", tcp._replace(transport="namespaces"), 8), 10.0)
        self.assertIsNone(analysis.wire_limit(between, "all_reduce", tcp, 8))

    def test_a_machine_that_was_not_quiet(self):
        self.assertIn("1 of 2 results were measured while other processes took more than 15% of it",
                      analysis.report([row("tutti", "default", 2.0, others=0.5), row("ucc", "cma", 3.0, others=0.01)]))


class Pictures(WithFiles):
    def test_a_line_for_each_system_and_the_limit(self):
        rows = [row("tutti", "default", 2.0, bytes=count) for count in (8, 64)] + \
               [row("tutti", "default", 2.0, in_place=True), row("ucc", "cma", 5.0), row("ucc", "posix", 3.0),
                limit("direct map", "all_reduce", 0.5)]
        (name, picture), = plots.pictures(rows)
        self.assertEqual(name, "all_reduce-shm-2-float.svg")
        curves = {curve["name"]: curve["points"] for curve in picture["curves"]}
        self.assertEqual(set(curves), {"tutti", "tutti, in place", "UCC", "limit of the machine"})
        self.assertEqual(curves["UCC"], [[8, 8 / 3000, 3.0]])
        self.assertEqual([point[0] for point in curves["tutti"]], [8, 64])

    def test_they_are_drawn(self):
        path = self.file("results.json", [row("tutti", "default", 2.0), row("ucc", "cma", 5.0)])
        status, output, errors = command("run", "--from", path, "--bin", BIN)
        self.assertEqual(status, 0, errors)
        self.assertIn("**2.50**", output)
        self.assertEqual((self.folder / "results.md").read_text(encoding="utf-8").strip(), output.strip())
        drawn = self.folder / "results-plots/all_reduce-shm-2-float.svg"
        texts = {text.text for text in xml.etree.ElementTree.parse(drawn).iter("{http://www.w3.org/2000/svg}text")}
        self.assertLessEqual({"tutti", "UCC", "all_reduce: Shared memory, 2 ranks"}, texts)


class Changes(WithFiles):
    def test_ratios_of_what_both_have(self):
        before = self.file("before", [row("tutti", "default", 4.0), row("tutti", "default", 1.0, bytes=64), row("ucc", "cma", 1.0),
                                      row("tutti", "default", 1.0, bytes=128)])
        after = self.file("after", [row("tutti", "default", 1.0), row("tutti", "default", 2.0, bytes=64)])
        status, output, errors = command("changes", before, after)
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("| Shared memory, 2 ranks | ordinary | 1.41 | 0.50 | 4.00 | 2 |", output)
        self.assertIn("Slower most:\n\n- 0.50: Shared memory, 2 ranks: all_reduce, 64 B: 1.00 us before, 2.00 us after", output)
        self.assertIn("Faster most:\n\n- 4.00: Shared memory, 2 ranks: all_reduce, 8 B: 4.00 us before, 1.00 us after", output)

    def test_nothing_in_common(self):
        before, after = self.file("before", [row("tutti", "default", 4.0)]), self.file("after", [row("ucc", "cma", 4.0)])
        status, output, errors = command("changes", before, after)
        self.assertEqual((status, output), (2, ""))
        self.assertIn("no cell of tutti in common", errors)


class BadFiles(WithFiles):
    def expect(self, text, path):
        for arguments in (("run", "--from", path, "--no-plots"), ("changes", path, path)):
            status, output, errors = command(*arguments)
            self.assertEqual((status, output, len(errors.splitlines())), (2, "", 1), errors)
            self.assertIn(text, errors)

    def test_no_file(self):
        self.expect("cannot be read", self.folder / "nothing")
        self.expect("cannot be read", self.folder)

    def test_no_json(self):
        self.expect("is no JSON", self.file("text", "8 B: fast"))
        self.expect("is no list of results", self.file("object", "{}"))

    def test_tables_are_not_written_over_results(self):
        path = self.file("results.md", [row("tutti", "default", 1.0)])
        before = path.read_text(encoding="utf-8")
        status, output, errors = command("run", "--from", path, "--no-plots")
        self.assertEqual((status, output), (2, ""))
        self.assertIn("the tables would be written over it", errors)
        self.assertEqual(path.read_text(encoding="utf-8"), before)

    def test_no_results(self):
        for wrong, text in ((3, "is no result"), ({}, "is no result"), (row("tutti", "default", "fast"), 'median_us is "fast"'),
                            (row("tutti", "default", True), "median_us is true"),
                            (row("tutti", "default", 0), "that cannot be"), (row("tutti", "default", float("inf")), "that cannot be"),
                            (row("tutti", "default", 10**400), "that cannot be"), (row("tutti", "default", 1.0, rounds_us=[10**400]), "rounds_us has"),
                            (row("tutti", "default", 1.0, bytes=-8), "that cannot be"),
                            (row("tutti", "default", 1.0, ranks=None), "ranks is null"),
                            (row("tutti", "default", 1.0, in_place=1), "in_place is 1"),
                            ({"system": "machine"}, "config is null"), (row("tutti", "default", 1.0, busy=[]), "busy is []"),
                            (row("tutti", "\ud800", 1.0), "cannot be printed"), (row("tutti", "default", 1.0, version=3), "version is 3"),
                            (row("tutti", "default", 1.0, bytes=10**400), "that cannot be"),
                            (row("tutti", "default", 1.0, rounds_us=3), "rounds_us is 3"),
                            (row("tutti", "default", 1.0, rounds_us=[1.0, 0]), "rounds_us has 0"),
                            (row("tutti", "default", 1.0, lines_us=[None, "x"]), 'lines_us has "x"')):
            with self.subTest(wrong):
                self.expect(text, self.file("rows", [row("tutti", "default", 1.0), wrong]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
