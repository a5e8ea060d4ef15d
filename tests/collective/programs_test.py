"""The measuring programs as a user runs them: the short form of the matrix, reports, memory, and what goes wrong."""
import contextlib
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import perf_jobs
import perf_matrix
from perf_jobs import ALGORITHMS, ALL_ALGORITHMS, PLACES, PROGRAMS, Job, run, run_job

SMALL = ("-b", "8", "-e", "8", "-n", "1", "-w", "0")


def test_of(dimension):
    def test(self):
        jobs = list(dimension(perf_matrix.SHORT))
        self.assertTrue(jobs)
        for job in jobs:
            with self.subTest(job.command()):
                fault = perf_jobs.fault_of(job, run_job(job))
                if fault:
                    self.fail(fault)
    test.__doc__ = dimension.__doc__
    return test


class Matrix(unittest.TestCase):
    """One test for each dimension of the matrix: Matrix.test_places, ..."""


for name, generator in perf_matrix.DIMENSIONS.items():
    setattr(Matrix, f"test_{name}", test_of(generator))


class Programs(unittest.TestCase):
    def good(self, job):
        outcome = run_job(job)
        fault = perf_jobs.fault_of(job, outcome)
        if fault:
            self.fail(fault)
        return outcome

    def bad(self, program, arguments, *texts, settings=None):
        """Runs a command that must fail in time, and say so with these texts (regular expressions)."""
        outcome = run(program, arguments, settings)
        self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
        self.assertNotEqual(outcome.status, 0, outcome.explain("ends with 0"))
        for text in texts:
            self.assertRegex(outcome.errors, text, outcome.explain("says something else"))
        lines = outcome.errors.splitlines()
        self.assertEqual(len(lines), len(set(lines)), outcome.explain("says a line twice"))
        return outcome


class Names(Programs):
    def test_table_is_complete(self):
        """--algo names what the collective has or is reported as not used: the matrix knows all there are."""
        for program in PROGRAMS:
            for algorithm in ALL_ALGORITHMS:
                with self.subTest(f"{program} --algo {algorithm}"):
                    outcome = run(program, ("-t", "4", *SMALL, "-b", "64", "-e", "64", "--algo", algorithm))
                    self.assertEqual(outcome.status, 0, outcome.explain("fails"))
                    expected = algorithm not in ALGORITHMS[program]
                    self.assertEqual("was not used" in outcome.errors, expected, outcome.explain("unexpected"))


class Requests(Programs):
    def test_every_program_makes_them(self):
        for program in PROGRAMS:
            job = Job(program, ranks=2, options=("-n", "3", "--persistent", "1"))
            with self.subTest(job.command()):
                self.good(job)


class Reports(Programs):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def json_of(self, job):
        path = os.path.join(self.folder, "report.json")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.good(perf_jobs.dataclasses.replace(job, options=(*job.options, "--json", path)))
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def test_json_has_every_line_and_what_was_used(self):
        carriers = {"shm": "shm", "tcp": "tcp", "threads": "p2p"}
        for program in PROGRAMS:
            for place in PLACES:
                job = Job(program, place, sizes=("64", "16K", 16), options=("-n", "2"))
                with self.subTest(job.command()):
                    report = self.json_of(job)
                    self.assertEqual(report["program"], program)
                    self.assertEqual([device["rank"] for device in report["devices"]], [0, 1, 2, 3])
                    self.assertEqual([row["size"] for row in report["results"]], [64, 1024, 16384])
                    self.assertEqual(report["out_of_bounds"], {"count": 0, "okay": "true"})
                    self.assertEqual(report["errors"], [])
                    for row in report["results"]:
                        self.assertEqual(row["out_of_place"]["transports"], carriers[place])
                        self.assertEqual(row["out_of_place"]["nwrong"], 0)
                        self.assertGreater(row["out_of_place"]["time"], 0)

    def test_json_keeps_what_is_there(self):
        path = os.path.join(self.folder, "kept.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
        self.good(Job("all_reduce_perf", options=("-n", "1", "-J", path)))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        others = [name for name in os.listdir(self.folder) if name != "kept.json"]
        self.assertEqual(len(others), 1, others)
        with open(os.path.join(self.folder, others[0]), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["program"], "all_reduce_perf")

    def test_json_tells_a_failed_check(self):
        path = os.path.join(self.folder, "failed.json")
        self.bad("all_reduce_perf", ("--ranks", "4", *SMALL, "--plant-error", "--json", path))
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["out_of_bounds"], {"count": 2, "okay": "false"})
        self.assertEqual(report["results"][0]["out_of_place"]["nwrong"], 1)

    def test_percentiles_agree_with_the_times(self):
        for options in (("--percentiles",), ("-I", "1"), ("--percentiles", "-y", "0"), ("--percentiles", "-K", "3")):
            job = Job("all_reduce_perf", sizes=("1K", "16K", 4), options=("-n", "10", *options))
            with self.subTest(job.command()):
                for row in self.json_of(job)["results"]:
                    times = row["out_of_place_per_iter"]
                    self.assertEqual(len(times["times_us"]), 10)
                    counted = sorted(times["times_us"][times["skipped_iterations"]:])
                    self.assertEqual(times["skipped_iterations"], 3 if "-K" in options else 0)
                    self.assertEqual((times["min_us"], times["max_us"]), (counted[0], counted[-1]))
                    self.assertLessEqual(times["p50_us"], times["p95_us"])
                    self.assertLessEqual(times["p95_us"], times["p99_us"])
                    self.assertIn(times["p99_us"], counted)

    def test_percentiles_add_columns(self):
        job = Job("all_reduce_perf", sizes=("1K", "16K", 4), options=("-n", "10", "--percentiles"))
        header = next(line for line in self.good(job).output.splitlines() if "algbw" in line)
        for column in ("i_min", "i_max", "i_p99", "i_cv%"):
            self.assertEqual(header.split().count(column), 2, header)

    def test_plot_is_a_picture_of_all_sizes(self):
        path = os.path.join(self.folder, "plot.svg")
        job = Job("all_reduce_perf", sizes=("1K", "1M", 4), options=("-n", "1", "--plot", path))
        self.good(job)
        root = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        text = " ".join(root.itertext())
        for word in ("all_reduce_perf", "GB/s", "us", "1K", "1M"):
            self.assertIn(word, text.replace("µs", "us").replace(" Ki", "K").replace(" Mi", "M"))

    def test_unchecked_runs_say_so(self):
        output = self.good(Job("all_reduce_perf", sizes=("1K", "1K", 2), options=("-n", "1", "-c", "0"))).output
        row = next(line for line in output.splitlines() if re.match(r" +1024 ", line))
        self.assertEqual(row.split().count("N/A"), 2, row)


class Memory(Programs):
    """-M: 8 local ranks use at most 8 MiB and 0.5 MiB for each connected peer."""

    LINE = re.compile(r"^# Memory usage         : rank +(\d+) library .*\((\d+) bytes\) \| peers (\d+) ", re.MULTILINE)

    def test_ranks_stay_within_the_bound(self):
        for place in PLACES:
            for program in PROGRAMS:
                for algorithm in ALGORITHMS[program]:
                    chosen = ("--algo", algorithm)
                    groups = (("TUTTI_GROUP_SIZE", "2"),) if algorithm == "hierarchical" else ()
                    job = Job(program, place, 8, ("64K", "64K", 2), ("-n", "1", "-w", "0", "-M", *chosen), groups)
                    with self.subTest(job.command()):
                        self.check(self.good(job))

    def check(self, outcome):
        lines = [tuple(map(int, found)) for found in self.LINE.findall(outcome.output)]
        self.assertEqual([rank for rank, _, _ in lines], list(range(8)), outcome.explain("not a line a rank"))
        for _, used, peers in lines:
            self.assertGreaterEqual(peers, 1)
            self.assertLessEqual(used, (8 << 20) + peers * (512 << 10), outcome.explain("more than the bound"))


class Failures(Programs):
    def test_planted_error_is_found(self):
        for program in PROGRAMS:
            for place in PLACES:
                job = Job(program, place, sizes=("1K", "64K", 64), options=("-n", "1", "--plant-error"))
                outcome = run(program, job.arguments(), job.settings())
                with self.subTest(job.command()):
                    self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
                    self.assertNotEqual(outcome.status, 0, outcome.explain("ends with 0"))
                    self.assertRegex(outcome.output, r"\n# Out of bounds values : [1-9]\d* FAILED\n")

    def test_wrong_command_lines(self):
        ranks = ("--ranks", "2")
        for arguments, text in (
                (("--bogus",), "--bogus"), (("-b", "1X"), "1X"), (("-b", "64", "-e", "8"), "64 > 8"),
                (("-d", "float128"), "float128"), (("-o", "xor"), "xor"), (("-r", "-2"), "-2"), (("-R", "3"), "3"),
                (("-n", "0"), "iters"), (("-G", "1"), "CUDA"), (("-x", "1"), "-x"), (("--algo", "magic", *SMALL), "magic.*ring"),
                (("--transport", "pigeon", *SMALL), "pigeon.*shm"), (("-c", "0", "--plant-error"), "plant-error"),
                (("--json", "/nowhere/a.json", *SMALL), "/nowhere/a.json"), (("--plot", "/nowhere/a", *SMALL), "/nowhere/a")):
            with self.subTest(" ".join(arguments)):
                self.bad("all_reduce_perf", (*ranks, *arguments), text)
        self.bad("broadcast_perf", ("--ranks", "2", *SMALL, "-r", "2"), "--root 2: there are only 2 ranks")
        for what, text in ((("-o", "band"), "-o band is not defined for float: choose integers or bool with -d"),
                           (("-d", "bool", "-o", "avg"), "-o avg is not defined for bool: choose numbers with -d")):
            self.bad("all_reduce_perf", (*ranks, *SMALL, *what), text)

    def test_help_is_no_failure(self):
        outcome = run("all_reduce_perf", ("--help",))
        self.assertEqual((outcome.status, outcome.errors), (0, ""))
        for option in ("--ranks", "--algo", "--transport", "--json", "--plot", "--percentiles"):
            self.assertIn(option, outcome.output)

    def test_settings_that_make_no_sense(self):
        for name in ("TUTTI_TRANSPORT", "TUTTI_ALGO", "TUTTI_CHANNELS", "TUTTI_VERIFY", "TUTTI_GROUP_SIZE"):
            with self.subTest(name):
                self.bad("all_reduce_perf", ("--ranks", "2", *SMALL), name, settings={name: "nonsense"})

    def test_options_win_over_the_environment(self):
        told = (("TUTTI_ALGO", "ring"), ("TUTTI_TRANSPORT", "p2p"), ("TUTTI_OPERATION_TIMEOUT_MS", "1"),
                ("TUTTI_DEVICE", "cuda"))
        options = ("-n", "1", "--algo", "tree", "--transport", "shm", "-T", "60")
        self.good(Job("all_reduce_perf", "shm", 2, options=options, environment=told))

    def test_an_algorithm_of_the_environment_that_is_not_there_is_told(self):
        outcome = run("all_reduce_perf", ("-t", "2", *SMALL), {"TUTTI_ALGO": "Bruck"})
        self.assertEqual(outcome.status, 0, outcome.explain("fails"))
        self.assertIn("TUTTI_ALGO=Bruck was not used", outcome.errors)

    def test_a_choice_or_a_rule_for_another_operation_is_no_algorithm_that_is_missed(self):
        for rules in ("ring,tree", "^ring", "ring;all_reduce:tree"):
            with self.subTest(rules):
                outcome = run("all_reduce_perf", ("-t", "2", *SMALL), {"TUTTI_ALGO": rules})
                self.assertEqual(outcome.status, 0, outcome.explain("fails"))
                self.assertNotIn("was not used", outcome.errors)

    def test_unknown_log_level_keeps_warnings(self):
        job = Job("all_reduce_perf", "threads", options=("-n", "1"), environment=(("TUTTI_DEBUG", "loud"),))
        self.assertIn("TUTTI_DEBUG=loud: choose one of", self.good(job).errors)

    def test_a_transport_that_cannot_serve_is_told(self):
        self.bad("all_reduce_perf", ("--ranks", "2", *SMALL), "p2p", settings={"TUTTI_TRANSPORT": "p2p"})


class Deaths(Programs):
    """A rank or the launcher dies while operations run."""

    def start_endless(self, place, options=()):
        job = Job("all_reduce_perf", place, 4, ("256K", "256K", 2), ("-N", "0", *options))
        process = perf_jobs.start(job.program, job.arguments(), job.settings())
        self.addCleanup(self.end, process)
        self.wait_for_lines(process, job)
        return job, process, self.ranks_of(process)

    def end(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def wait_for_lines(self, process, job):
        """Returns when the first lines of the table are there: by then all ranks have joined and exchanged data."""
        deadline, seen = time.monotonic() + 30 * perf_jobs.patience(), b""
        while len(re.findall(rb"\n +262144 ", seen)) < 2:
            left = deadline - time.monotonic()
            self.assertGreater(left, 0, f"no table: {job.command()}\n{seen.decode()}")
            if select.select([process.stdout], [], [], left)[0]:
                piece = os.read(process.stdout.fileno(), 4096)
                self.assertTrue(piece, f"ended early: {job.command()}\n{seen.decode()}")
                seen += piece

    def ranks_of(self, process):
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
            pids = [int(pid) for pid in file.read().split()]
        ranks = {}
        for pid in pids:
            with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
                ranks[int(re.search(r"TUTTI_RANK=(\d+)", file.read())[1])] = pid
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])
        return ranks

    def expect_gone(self, pids):
        deadline = time.monotonic() + 20 * perf_jobs.patience()
        while any(os.path.exists(f"/proc/{pid}") and self.state_of(pid) not in "ZX" for pid in pids):
            self.assertLess(time.monotonic(), deadline, f"still there: {pids}")
            time.sleep(0.05)

    @staticmethod
    def state_of(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "X"

    def test_killed_rank_ends_the_job(self):
        for place in ("shm", "tcp"):
            for victim in (0, 2, 3):
                with self.subTest(place=place, victim=victim):
                    job, process, ranks = self.start_endless(place)
                    os.kill(ranks[victim], signal.SIGKILL)
                    outcome = perf_jobs.finish(process, job.command(), 20)
                    self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
                    self.assertNotEqual(outcome.status, 0, outcome.explain("ends with 0"))
                    pid = ranks[victim]
                    self.assertRegex(outcome.errors, rf"rank {victim} \(pid {pid}\): killed by signal 9")
                    self.assertRegex(outcome.errors, rf"rank \d: .*rank {victim} \(host .*pid {pid}\)")
                    if perf_jobs.patience() == 1:  # the program gives its ranks three seconds, whatever slows them
                        self.assertNotIn("terminated", outcome.errors, "a rank had to be ended: it did not notice")
                    self.expect_gone(ranks.values())

    def test_killed_rank_on_a_stream_ends_the_job(self):
        job, process, ranks = self.start_endless("shm", ("-y", "0"))
        os.kill(ranks[1], signal.SIGKILL)
        outcome = perf_jobs.finish(process, job.command(), 20)
        self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
        self.assertNotEqual(outcome.status, 0, outcome.explain("ends with 0"))
        self.assertRegex(outcome.errors, rf"rank \d: .*rank 1 \(host .*pid {ranks[1]}\)")

    def test_interrupt_ends_all_ranks(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                job, process, ranks = self.start_endless("shm")
                os.kill(process.pid, number)
                outcome = perf_jobs.finish(process, job.command(), 20)
                self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
                self.assertNotEqual(outcome.status, 0, outcome.explain("ends with 0"))
                self.expect_gone(ranks.values())

    def test_ranks_do_not_outlive_their_launcher(self):
        _, process, ranks = self.start_endless("tcp")
        os.kill(process.pid, signal.SIGKILL)
        self.expect_gone(ranks.values())


if __name__ == "__main__":
    unittest.main()
