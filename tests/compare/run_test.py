"""bench/compare/run with tutti alone, and with drivers that go wrong. Nothing is said of any time but that it is one."""
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ["TUTTI_BIN_DIR"])
PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
sys.path[:0] = [str(ROOT / "bench/compare/lib"), str(ROOT / "tools/lib")]
import analysis  # noqa: E402  pylint: disable=wrong-import-position
import jobs  # noqa: E402  pylint: disable=wrong-import-position
import network  # noqa: E402  pylint: disable=wrong-import-position
import programs  # noqa: E402  pylint: disable=wrong-import-position
import systems  # noqa: E402  pylint: disable=wrong-import-position
from cells import OPERATIONS, Cell, size_of, size_text  # noqa: E402  pylint: disable=wrong-import-position
from measuring import Comparison  # noqa: E402  pylint: disable=wrong-import-position


def run(*arguments):
    done = subprocess.run([str(ROOT / "bench/compare/run"), *map(str, arguments)], capture_output=True, text=True, check=False,
                          timeout=100 * PATIENCE, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def abandoned():
    """The namespaces of processes that are gone."""
    names = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
    return {name for name in names if name.startswith("tutti-") and not os.path.isdir(f"/proc/{name.split('-')[1]}")}


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Measuring(WithFolder):
    def measured(self, *arguments):
        path = self.folder / "results.json"
        status, output, errors = run("--bin", BIN, "--systems", "tutti", "--quick", "--budget", "0.004", "--ranks", "2", "--json", path,
                                     *arguments)
        self.assertEqual(status, 0, errors)
        self.assertNotIn("failed", errors)
        return analysis.read(path), output

    def test_every_cell_once(self):
        rows, output = self.measured("--sizes", "8,64K")
        ours = [row for row in rows if row["system"] == "tutti"]
        keys = {(row["op"], row["bytes"], row["transport"], row["in_place"], row["memory"]) for row in ours}
        self.assertEqual((len(ours), len(keys)), (64, 64))  # 4 operations, 2 sizes, 2 transports, 2 places, 2 memories
        for row in ours:
            self.assertEqual((row["ranks"], row["type"], len(row["rounds_us"]), len(row["lines_us"])), (2, "float", 1, 1))
            self.assertGreater(row["median_us"], 0)
        lines = [row["lines_us"][0] for row in ours if row["lines_us"][0] is not None]  # where it did not change meanwhile
        self.assertTrue(all(line > 0 for line in lines))
        if len(os.sched_getaffinity(0)) > 1:
            self.assertGreater(len(lines), 0)
        self.assertIn("## Shared memory, 2 ranks", output)
        self.assertIn("## TCP over loopback, 2 ranks", output)
        pictures = sorted((self.folder / "results-plots").iterdir())
        self.assertEqual(len(pictures), 8)
        for picture in pictures:
            xml.etree.ElementTree.parse(picture)

    def test_the_machine_has_limits(self):
        rows, _ = self.measured("--sizes", "8,64K", "--ops", "all_reduce,broadcast", "--transport", "shm", "--no-plots")
        limits = {(row["config"], row["op"], row["bytes"]) for row in rows if row["system"] == "limit"}
        self.assertLessEqual({("memcpy", "memcpy", 8), ("memcpy", "memcpy", 65536), ("direct map", "all_reduce", 8),
                              ("direct map", "broadcast", 65536)}, limits)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertLessEqual({("cache line", "round_trip", 64), ("socket", "stream", 65536), ("socket", "exchange", 8)}, limits)

    def test_between_namespaces(self):
        try:
            network.check_machine()
        except network.CannotRun as reason:
            self.skipTest(str(reason))
        before = abandoned()
        rows, output = self.measured("--sizes", "8", "--transport", "namespaces", "--memory", "ordinary", "--no-plots")
        ours = [row for row in rows if row["system"] == "tutti"]
        self.assertEqual({(row["op"], row["transport"], row["in_place"]) for row in ours},
                         {(op, "namespaces", place) for op in OPERATIONS for place in (False, True)})
        if len(os.sched_getaffinity(0)) > 1:
            sockets = {(row["transport"], row["op"]) for row in rows if row["config"] == "socket"}
            self.assertEqual(sockets, {(way, op) for way in ("tcp", "namespaces") for op in ("stream", "exchange", "round_trip")})
        for part in ("## TCP between namespaces, 2 ranks", "- socket, stream between namespaces, 2 threads, 8 B: "):
            self.assertIn(part, output)
        self.assertLessEqual(abandoned(), before)

    def test_types_rounds_and_busy_processors(self):
        rows, output = self.measured("--sizes", "1K", "--types", "bfloat16,half,int32,double", "--ops", "all_reduce,reduce_scatter",
                                     "--transport", "shm", "--rounds", "2", "--busy", "--no-limits", "--memory", "ordinary", "--no-plots")
        ours = [row for row in rows if row["system"] == "tutti"]
        self.assertEqual(len(ours), 4 * 2 * 2)
        self.assertTrue(all(row["busy"] and len(row["rounds_us"]) == 2 and row["lines_us"] == [None, None] for row in ours))
        self.assertIn("## Shared memory, 2 ranks, bfloat16, busy processors", output)
        self.assertEqual({row["system"] for row in rows}, {"machine", "tutti"})

    def test_options_that_cannot_be_meant(self):
        for arguments in (("--ranks", "1"), ("--ranks", "17"), ("--ranks", "many"), ("--sizes", "0"), ("--sizes", "8,x"),
                          ("--systems", "nccl"), ("--ops", "reduce"), ("--types", "quad"), ("--transport", "pigeons"),
                          ("--rounds", "0"), ("--budget", "-1"), ("--budget", "nan"), ("--places", "beside"),
                          ("--ranks", "²"), ("--json", "."), ("--json", "/dev/null"), ("--json", "tables.md")):
            with self.subTest(arguments):
                status, output, errors = run(*arguments)
                self.assertEqual((status, output), (2, ""))
                self.assertIn(f"argument {arguments[0]}: ", errors)

    def test_what_would_not_fit_is_not_begun(self):
        status, output, errors = run("--bin", BIN, "--systems", "tutti", "--sizes", "1000G", "--json", self.folder / "results.json")
        self.assertEqual((status, output), (2, ""))
        self.assertIn("8 ranks with two vectors of 1000 GiB each need 16000 GiB", errors)
        status, output, errors = run("--bin", BIN, "--systems", "tutti", "--quick", "--json", "/proc/nowhere/results.json")
        self.assertEqual((status, output, len(errors.splitlines())), (2, "", 1), errors)

    @contextlib.contextmanager
    def going_on(self, hangup):
        """One that would go on for long. `hangup`: what becomes of SIGHUP, whatever this process makes of it."""
        arguments = ("--bin", str(BIN), "--systems", "tutti", "--no-install", "--no-limits", "--rounds", "9999", "--budget", "0.004",
                     "--ranks", "2", "--sizes", "8", "--ops", "broadcast", "--json", str(self.folder / "results.json"))
        with subprocess.Popen([str(ROOT / "bench/compare/run"), *arguments], stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, hangup)) as process:
            try:
                self.assertIn("measuring tutti", process.stderr.readline())
                yield process
            finally:
                process.terminate()  # whatever went wrong: nobody waits for all those rounds

    def end(self, process, number):
        process.send_signal(number)
        _, errors = process.communicate(timeout=60 * PATIENCE)
        self.assertEqual(process.returncode, 2)
        self.assertIn("bench/compare/run: interrupted", errors.splitlines()[-1])

    def test_an_end_that_is_asked_for(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), self.going_on(signal.SIG_DFL) as process:
                self.end(process, number)

    def test_under_nohup_a_terminal_that_closes_ends_nothing(self):
        with self.going_on(signal.SIG_IGN) as process:
            process.send_signal(signal.SIGHUP)
            for _ in range(2):  # it goes on
                self.assertIn("round ", process.stderr.readline())
            self.end(process, signal.SIGTERM)

    def test_a_folder_without_programs(self):
        status, output, errors = run("--bin", self.folder, "--systems", "tutti", "--quick", "--json", self.folder / "results.json")
        self.assertEqual((status, output), (2, ""))
        self.assertIn("compare_tutti: build compare_tutti, or leave --bin out", errors)

    def test_a_peer_that_is_not_there_is_left_out(self):
        status, _, errors = run("--bin", BIN, "--systems", "tutti,openmpi", "--openmpi", self.folder, "--no-install", "--quick", "--budget",
                                "0.004", "--ranks", "2", "--sizes", "8", "--ops", "broadcast", "--transport", "shm", "--no-limits",
                                "--no-plots", "--json", self.folder / "results.json")
        self.assertEqual(status, 0, errors)
        self.assertIn("Open MPI is left out: neither ", errors)


# A driver in Python: what it does stands behind this.
DRIVER = """#!/usr/bin/env python3
import json, os, signal, sys, time
options = dict(zip(sys.argv[1:], sys.argv[2:]))
def write(row):
    if options["--rank"] == "0":
        with open(options["--out"], "a") as file:
            file.write(json.dumps(row) + "\\n")
def begin(line):
    write({"begun": line})
def tell(bytes, us):
    write({"op": "all_reduce", "type": "float", "bytes": bytes, "in_place": False, "us": us})
"""


class Jobs(WithFolder):
    def program(self, *lines):
        path = self.folder / "driver"
        path.write_text(DRIVER + "\n".join(lines), encoding="utf-8")
        path.chmod(0o755)
        return programs.Program(path, "a driver")

    def measure(self, program, seconds=60):
        return jobs.measure(program, 2, [Cell("all_reduce", "float", 8, False).line()], [], dict(os.environ), seconds)

    def test_all_is_well(self):
        outcome = self.measure(self.program("begin(0)", "tell(8, 1.5)"))
        self.assertEqual(outcome, jobs.Outcome({Cell("all_reduce", "float", 8, False): jobs.Timing(1.5)}, 0, None, 0))

    def test_a_wrong_sum_ends_the_job_and_what_came_before_counts(self):
        outcome = self.measure(self.program("tell(8, 1.5)", "if options['--rank'] == '1':",
                                            "    sys.exit('rank 1: all_reduce of 64 bytes of float: element 3 is wrong')",
                                            "time.sleep(600)"))
        self.assertEqual(outcome.times, {Cell("all_reduce", "float", 8, False): jobs.Timing(1.5)})
        self.assertEqual(outcome.trouble, "exit status 1: rank 1: all_reduce of 64 bytes of float: element 3 is wrong")

    def test_the_ranks_tell_what_they_used(self):
        self.assertGreater(self.measure(programs.Program(BIN / "compare_tutti", "tutti")).used, 0)

    def test_a_crash(self):
        outcome = self.measure(self.program("os.kill(os.getpid(), signal.SIGSEGV)"))
        self.assertEqual(outcome.trouble, "killed by signal 11: it said nothing")

    def test_another_job_goes_on_behind_the_cell_that_failed(self):
        sizes = [8, 16, 32, 64]
        program = self.program("lines = open(options['--cells']).read().split('\\n')[:-1]", "for i, line in enumerate(lines):",
                               "    size = int(line.split()[2])", "    begin(i)",
                               "    if size in (16, 64): sys.exit(f'rank 0: {size} is wrong')", "    tell(size, size)")
        configuration, = systems.configurations(["tutti"], ["shm"], ["ordinary"])
        cells = [Cell("all_reduce", "float", size, False) for size in sizes]
        comparison = Comparison({"tutti": program}, [configuration], cells, Options)
        with contextlib.redirect_stderr(io.StringIO()):
            comparison.job(1, configuration, 2, "all_reduce")
        self.assertEqual(sorted(cell.bytes for _, _, cell in comparison.times), [8, 32])
        self.assertEqual([trouble.rpartition(": ")[2] for trouble in comparison.troubles], ["16 is wrong", "64 is wrong"])

    def test_a_job_that_stands_still_is_ended(self):
        with open(self.folder / "errors", "w", encoding="utf-8") as errors, self.assertRaisesRegex(jobs.Ended, "not done after 0 s"):
            jobs.run(self.program("time.sleep(600)").commands(2, []), dict(os.environ), 0.3, errors)

    def test_an_end_that_is_asked_for_while_a_job_ends_comes_behind_it(self):
        done = False
        with self.assertRaises(KeyboardInterrupt):
            with jobs.undisturbed():
                os.kill(os.getpid(), signal.SIGINT)
                done = True
        self.assertTrue(done)

    def test_half_a_line_is_not_read(self):
        outcome = self.measure(self.program("tell(8, 1.5)", "if options['--rank'] == '0':",
                                            "    open(options['--out'], 'a').write('{\"op\": \"all_')"))
        self.assertEqual((len(outcome.times), outcome.trouble), (1, None))

    def test_a_rank_that_fails_does_not_leave_the_others_waiting(self):
        with jobs.Folder() as folder:
            arguments = folder.files(["all_reduce float 8 out 0"]) + ["--deadline", "60"]
            broken = [[str(BIN / "compare_tutti"), *arguments, "--rank", rank, "--ranks", "2"] for rank in ("0", "1")]
            broken[1][broken[1].index("--cells") + 1] = "/nowhere/cells"
            with folder.errors() as errors, self.assertRaises(jobs.Ended):
                jobs.run(broken, dict(os.environ), 50 * PATIENCE, errors)
            self.assertEqual(folder.said(), "rank 1: /nowhere/cells has no cells, or cannot be read")


class Drivers(WithFolder):
    def test_a_driver_is_compiled_again_for_another_build_of_the_peer(self):
        compiler = self.folder / "compiler"  # its driver is what it was asked for, and says how often
        compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho "$@" >> "$2"\n')
        compiler.chmod(0o755)

        def driver(prefix):
            return programs.compiled("driver", [str(compiler)], "mpi_driver.cc", self.folder, f"-L{prefix}").read_text().splitlines()

        self.assertEqual(len(driver("/one")), 1)
        self.assertEqual(len(driver("/one")), 1)
        self.assertIn("-L/other", driver("/other")[-1])
        self.assertEqual(len(driver("/one")), 3)


class Options:
    """Of a comparison in which nothing is started."""
    ranks, transport, rounds, budget, busy, limits = [2], ["shm"], 3, 0.01, False, False


class Turns(unittest.TestCase):
    """Which cells are measured in which round."""

    def setUp(self):
        self.cell = Cell("all_reduce", "float", 8, False)
        self.configurations = systems.configurations(["tutti", "openmpi", "ucc"], ["shm"], ["ordinary"])
        self.comparison = Comparison({}, self.configurations, [self.cell], Options)
        self.named = {f"{one.system} {one.name}": one for one in self.configurations}

    def lines(self, name):
        return self.comparison.lines(self.named[name], 2, "all_reduce")

    def took(self, name, microseconds):
        self.comparison.times[self.named[name], 2, self.cell] = {1: jobs.Timing(microseconds)}

    def test_a_peer_far_from_the_best_has_one_turn_and_tutti_all(self):
        self.assertEqual(len(self.lines("ucc cma")), 1)
        self.took("openmpi vader", 1.0)
        self.took("ucc cma", 1.9)
        self.took("ucc posix", 2.1)
        self.took("tutti default", 50.0)
        self.assertEqual([len(self.lines(name)) for name in ("openmpi vader", "ucc cma", "ucc posix", "tutti default")], [1, 1, 0, 1])

    def test_where_minutes_are_told_apart_one_turn_tells_too_little(self):
        self.took("openmpi vader", 1.0)
        for number in (1, 2, 3):
            self.assertEqual(len(self.lines("ucc posix")), 1)
            peer = self.comparison.times.setdefault((self.named["ucc posix"], 2, self.cell), {})
            peer[number] = jobs.Timing(5.0, 0.5)
        self.assertEqual(len(self.lines("ucc posix")), 0)
        peer[4] = jobs.Timing(1.5, 0.1)
        self.assertEqual(len(self.lines("ucc posix")), 1)

    def test_another_operation_has_a_job_of_its_own(self):
        self.assertEqual(self.comparison.lines(self.named["ucc cma"], 2, "broadcast"), [])

    def test_a_round_without_a_turn_is_none(self):
        self.comparison.times[self.named["ucc cma"], 2, self.cell] = {1: jobs.Timing(3.0, 0.2), 3: jobs.Timing(5.0)}
        self.comparison.others[self.named["ucc cma"], 2, self.cell] = [0.0]
        self.comparison.last = 3
        self.comparison.programs["ucc"] = programs.Program("ucc_driver", "UCC")
        measured, = (row for row in self.comparison.rows() if row["system"] == "ucc")
        self.assertEqual((measured["median_us"], measured["rounds_us"], measured["lines_us"]), (4.0, [3.0, None, 5.0], [0.2, None, None]))

    def test_slow_is_by_tutti(self):
        self.assertEqual(self.lines("ucc cma"), ["all_reduce float 8 out 0.000"])
        self.took("tutti default", 2.0)
        self.assertEqual(self.lines("ucc cma"), ["all_reduce float 8 out 8.000"])
        self.assertEqual(self.lines("tutti default"), ["all_reduce float 8 out 0.000"])

    def test_a_configuration_has_the_cells_that_it_is_for(self):
        self.assertEqual(self.lines("openmpi vader, heap kept"), [])
        self.assertEqual(len(self.lines("openmpi coll/sm")), 1)

    def test_what_the_caller_has_set_is_not_passed_on(self):
        environment = self.named["ucc cma"].environment({"TUTTI_ALGO": "ring", "UCX_TLS": "all", "PATH": "/bin"}, 2, 2)
        self.assertEqual((environment["UCX_TLS"], environment["PATH"]), ("posix,cma,self", "/bin"))
        self.assertNotIn("TUTTI_ALGO", environment)

    def test_who_is_crowded_yields(self):
        vader = self.named["openmpi vader"]
        self.assertEqual([vader.environment({}, ranks, 2)["OMPI_MCA_mpi_yield_when_idle"] for ranks in (2, 4)], ["0", "1"])
        self.assertEqual([self.named["ucc cma"].pins(ranks, 2) for ranks in (2, 4)], [True, False])


class Sizes(unittest.TestCase):
    def test_there_and_back(self):
        for text, count in (("8", 8), ("1K", 1024), ("64k", 65536), ("16M", 16 << 20), ("1MiB", 1 << 20), ("1000000", 1000000)):
            self.assertEqual(size_of(text), count)
        self.assertEqual([size_text(count) for count in (8, 1024, 1536, 16 << 20)], ["8 B", "1 KiB", "1536 B", "16 MiB"])
        for wrong in ("", "K", "1.5M", "-8", "0"):
            with self.assertRaises(ValueError, msg=wrong):
                size_of(wrong)


if __name__ == "__main__":
    unittest.main(verbosity=2)
