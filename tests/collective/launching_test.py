"""How the measuring programs come to their ranks: who starts whom, what is refused, what ps and signals see of them."""
import contextlib
import json
import os
import pty
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import perf_jobs
from perf_jobs import PROGRAMS, run
from ports import free_port

SMALL = ("-b", "8", "-e", "8", "-n", "1", "-w", "0")
ENDLESS = ("-b", "256K", "-e", "256K", "-N", "0")


class Programs(unittest.TestCase):
    def expect(self, outcome, status, *texts):
        self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
        self.assertEqual(outcome.status, status, outcome.explain("ends otherwise"))
        for text in texts:
            self.assertRegex(outcome.output + outcome.errors, text, outcome.explain("says something else"))

    def ranks_in(self, outcome):
        return len(re.findall(r"^#  Rank +\d+ ", outcome.output, re.MULTILINE))


class Launchers(Programs):
    """Whether someone has started the ranks is told by the library, in its words."""

    def test_half_a_set_is_refused(self):
        for settings, text in (
                ({"RANK": "0"}, "RANK=0 is set but WORLD_SIZE is not"),
                ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2 is set but RANK is not"),
                ({"TUTTI_SIZE": "4"}, "TUTTI_SIZE=4 is set but TUTTI_RANK is not"),
                ({"TUTTI_RANK": "0"}, "TUTTI_RANK=0 is set but TUTTI_SIZE is not"),
                ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "SLURM_STEP_ID is not"),
                ({"RANK": "1", "WORLD_SIZE": "2"}, r"rank 1 of 2.*MASTER_ADDR")):
            for arguments in ((), ("--ranks", "2"), ("-t", "2")):
                with self.subTest(settings=settings, arguments=arguments):
                    outcome = run("all_reduce_perf", (*arguments, *SMALL), settings)
                    self.expect(outcome, 1, text)
                    self.assertNotIn("Out of bounds", outcome.output)

    def test_none_starts_ranks_whatever_is_set(self):
        outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL),
                      {"RANK": "1", "WORLD_SIZE": "2", "PMI_SIZE": "x", "TUTTI_LAUNCHER": "none"})
        self.expect(outcome, 0, "0 OK")
        self.assertEqual(self.ranks_in(outcome), 2)

    def test_a_launcher_of_one_leaves_room_for_more(self):
        for settings in ({"RANK": "0", "WORLD_SIZE": "1"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
                         {"TUTTI_LAUNCHER": "auto", "RANK": "0", "WORLD_SIZE": "1"}, {}):
            for arguments, ranks in ((("--ranks", "2"), 2), (("-t", "3"), 3), ((), 1)):
                with self.subTest(settings=settings, arguments=arguments):
                    outcome = run("all_reduce_perf", (*arguments, *SMALL), settings)
                    self.expect(outcome, 0, "0 OK")
                    self.assertEqual(self.ranks_in(outcome), ranks, outcome.explain("other ranks"))


    def test_auto_wants_a_launcher(self):
        for arguments in (("--ranks", "2"), ("-t", "3"), ()):
            outcome = run("all_reduce_perf", (*arguments, *SMALL), {"TUTTI_LAUNCHER": "auto"})
            self.expect(outcome, 1, "tuttiCommInitEnv: no launcher has said who this process is")

    def test_two_that_claim_rank_0_are_both_named(self):
        for sockets in ("1", "0"):
            port = free_port()
            settings = {"TUTTI_RANK": "0", "TUTTI_SIZE": "2", "TUTTI_ROOT": f"127.0.0.1:{port}",
                        "TUTTI_UNIX_SOCKETS": sockets, "TUTTI_JOIN_TIMEOUT_MS": "600000"}
            processes = [perf_jobs.start("all_reduce_perf", SMALL, settings) for _ in range(2)]
            for process in processes:
                outcome = perf_jobs.finish(process, "all_reduce_perf", 60)
                self.expect(outcome, 1, "two processes claim rank 0: ", *(f"pid {one.pid}" for one in processes))

    def test_a_signal_ends_one_that_waits_for_the_others(self):
        port = free_port()
        settings = {"TUTTI_RANK": "0", "TUTTI_SIZE": "2", "TUTTI_ROOT": f"127.0.0.1:{port}",
                    "TUTTI_JOIN_TIMEOUT_MS": "600000"}
        process = perf_jobs.start("all_reduce_perf", ("--ranks", "2", *SMALL), settings)
        deadline = time.monotonic() + 30 * perf_jobs.patience()
        while len(os.listdir(f"/proc/{process.pid}/task")) < 2:  # the library is there, and waits for rank 1
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        outcome = perf_jobs.finish(process, "all_reduce_perf", 20)
        self.assertEqual(outcome.status, -signal.SIGINT, outcome.explain("ends otherwise"))


class Told(Programs):
    """What is said of the settings, and how often."""

    def test_once_whatever_starts_the_ranks(self):
        for who in ("--ranks", "-t"):
            for level, texts in (("version", ("version: tutti ",)),
                                 ("info", ("NCCL's variables are not read here", ", communicator ", "\n    plans  "))):
                with self.subTest(who=who, level=level):
                    outcome = run("all_reduce_perf", (who, "2", *SMALL),
                                  {"TUTTI_DEBUG": level, "NCCL_ALGO": "x", "TUTTI_TRANPORT": "shm"})
                    self.expect(outcome, 0, "0 OK")
                    for text in (*texts, "did you mean TUTTI_TRANSPORT"):
                        self.assertEqual(outcome.errors.count(text), 1, outcome.explain(text))

    def test_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = {"TUTTI_DEBUG": "info", "TUTTI_DEBUG_FILE": f"{folder}/%h.%p.100%%"}
            outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL), settings)
            self.expect(outcome, 0, "0 OK")
            self.assertEqual(outcome.errors, "")
            names = sorted(os.listdir(folder))
            for name in names:
                self.assertRegex(name, rf"^{re.escape(socket.gethostname())}[.]\d+[.]100%$")
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600)
            texts = []
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    texts.append(file.read())
            self.assertEqual("".join(texts).count(", communicator "), 1, texts)
            os.mkfifo(os.path.join(folder, "pipe"))
            for path, text in ((f"{folder}/none/log", "No such file"), (f"{folder}/pipe", "No such device"), (folder, "Is a directory")):
                outcome = run("all_reduce_perf", ("-t", "2", *SMALL), {"TUTTI_DEBUG": "version", "TUTTI_DEBUG_FILE": path})
                self.expect(outcome, 0, f"warning: TUTTI_DEBUG_FILE={path}: {text}.*; going on with standard error", "version: tutti ")

    def test_to_a_file_that_is_full(self):
        outcome = run("all_reduce_perf", ("-t", "2", *SMALL), {"TUTTI_DEBUG": "debug", "TUTTI_DEBUG_FILE": "/dev/full"})
        self.expect(outcome, 0, "0 OK")
        self.assertEqual(outcome.errors, "tutti warning: TUTTI_DEBUG_FILE=/dev/full: No space left on device; lines are missing there\n")

    def test_what_a_file_of_settings_says(self):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write("# all jobs\nTUTTI_ALGO=ring\nTUTTI_TRANPORT=shm\nand so on\n")
            file.flush()
            settings = {"TUTTI_CONF_FILE": file.name, "TUTTI_DEBUG": "info"}
            outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL), settings)
            self.expect(outcome, 0, "did you mean TUTTI_TRANSPORT", f"{file.name}, line 4: expected TUTTI_NAME=VALUE",
                        "all-reduce +8 B to 64 MiB: ring")
        outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL), {"TUTTI_CONF_FILE": "/nowhere/tutti.conf"})
        self.expect(outcome, 1, "TUTTI_CONF_FILE: /nowhere/tutti.conf cannot be read: No such file")

    def test_which_rank_could_not_join(self):
        port = free_port()
        outcome = run("all_reduce_perf", ("--ranks", "4", *SMALL), {"TUTTI_PORT_RANGE": f"{port}-{port + 1}"})
        self.assertNotEqual(outcome.status, 0)
        self.assertRegex(outcome.errors, r"(?m)^all_reduce_perf: rank \d: tuttiCommInitEnv: .*no free port from")
        self.assertNotIn("this process", outcome.errors)

    def test_a_replaced_variable_must_still_have_a_value(self):
        for name, value, options in (("TUTTI_DEVICE", "pigeon", ()), ("TUTTI_ALGO", "pigeon", ("--algo", "ring")),
                                     ("TUTTI_TRANSPORT", "pigeon", ("--transport", "shm,p2p")),
                                     ("TUTTI_OPERATION_TIMEOUT_MS", "pigeon", ("-T", "60"))):
            for who in ("--ranks", "-t"):
                with self.subTest(name=name, who=who):
                    outcome = run("all_reduce_perf", (who, "2", *SMALL, *options), {name: value})
                    self.expect(outcome, 1, f"{name}.*pigeon|pigeon.*{name}")
                    self.assertEqual(len(outcome.errors.splitlines()), 1, outcome.explain("more than the cause"))

    def test_a_folder_for_records_that_is_none(self):
        with tempfile.NamedTemporaryFile() as file:
            for folder, why in (("/nowhere/records", "No such file or directory"), (file.name, "Not a directory")):
                for who in ("--ranks", "-t"):
                    outcome = run("all_reduce_perf", (who, "3", *SMALL), {"TUTTI_DUMP_DIR": folder})
                    self.expect(outcome, 0, "0 OK")
                    text = f"TUTTI_DUMP_DIR={folder}: {why}: ranks that fail will leave no record"
                    self.assertEqual(outcome.errors.count(text), 1, outcome.explain("warns otherwise"))

    def test_errors_name_the_option(self):
        for option in ("--transport", "--algo"):
            for who in ("--ranks", "-t"):
                outcome = run("all_reduce_perf", (who, "2", *SMALL, option, "pigeon"))
                self.expect(outcome, 1, f": {option}: .*pigeon")
                self.assertNotIn("config", outcome.errors)
                self.assertEqual(len(outcome.errors.splitlines()), 1, outcome.explain("more than the cause"))

    def test_a_transport_that_is_left_out_is_no_fault_of_the_systems(self):
        for settings, options in (({"TUTTI_TRANSPORT": "p2p"}, ()), ({}, ("--transport", "p2p")),
                                  ({"TUTTI_TRANSPORT": "shm", "TUTTI_UNIX_SOCKETS": "0"}, ())):
            outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL, *options), settings)
            self.expect(outcome, 1, r"may use no transport to rank \d .*tcp: left out by TUTTI_TRANSPORT \(--transport\)")
            self.assertNotIn("operating system", outcome.errors)

    def test_where_others_would_meet_counts_for_nobody_who_is_alone(self):
        told = r"(?m)^all_reduce_perf: nobody says that other processes take part.*: {} not used$"
        for who in (("--ranks", "2"), ("-t", "2"), ()):
            outcome = run("all_reduce_perf", (*who, *SMALL), {"TUTTI_SECRET": "x", "TUTTI_ID_FILE": "/nowhere"})
            self.expect(outcome, 0, told.format("(TUTTI_SECRET, TUTTI_ID_FILE|TUTTI_ID_FILE, TUTTI_SECRET) are"))
            self.assertEqual(len(outcome.errors.splitlines()), 1, outcome.explain("says more"))
        of_one = run("all_reduce_perf", ("--ranks", "2", *SMALL), {"RANK": "0", "WORLD_SIZE": "1", "TUTTI_JOB": "x"})
        self.expect(of_one, 0, r"(?m)^all_reduce_perf: no other process takes part, by what TUTTI_SIZE or a launcher says, .*: TUTTI_JOB is not used$")
        for settings in ({"TUTTI_SECRET": "x", "TUTTI_LAUNCHER": "none"}, {"TUTTI_SECRET": ""}):
            self.assertEqual(run("all_reduce_perf", ("--ranks", "2", *SMALL), settings).errors, "")

    def test_by_one_rank_what_all_would_say(self):
        port = free_port()
        wrong = {"TUTTI_TRANPORT": "shm", "TUTTI_DEBUG": "loud", "TUTTI_SECRET": "weak", "TUTTI_DUMP_DIR": "/nowhere/records"}
        for unix in ("0", "1"):
            settings = {**wrong, "TUTTI_SIZE": "2", "TUTTI_ROOT": f"127.0.0.1:{port}", "TUTTI_UNIX_SOCKETS": unix}
            ranks = [perf_jobs.start("all_reduce_perf", ("-t", "2", *SMALL), {**settings, "TUTTI_RANK": str(rank)})
                     for rank in range(2)]
            outcomes = [perf_jobs.finish(rank, "all_reduce_perf", 60) for rank in ranks]
            for outcome in outcomes:
                self.expect(outcome, 0)
            for text in ("did you mean TUTTI_TRANSPORT", "TUTTI_DEBUG=loud: choose one of", "could be guessed",
                         "TUTTI_DUMP_DIR=/nowhere/records: No such file"):
                self.assertEqual(outcomes[0].errors.count(text), 1, outcomes[0].explain(text))
            self.assertEqual(outcomes[1].errors, "")
        for who in ("--ranks", "-t"):
            outcome = run("all_reduce_perf", (who, "2", *SMALL), {"TUTTI_TRANPORT": "shm", "TUTTI_DEBUG": "loud"})
            self.assertEqual(len(outcome.errors.splitlines()), 2, outcome.explain("other warnings"))

    def test_the_environment_is_no_call(self):
        outcome = run("all_reduce_perf", SMALL, {"RANK": "0"})
        self.expect(outcome, 1, "tuttiCommInitEnv: RANK=0 is set")
        self.assertNotIn("does not fit", outcome.errors)


class Children(Programs):
    """What --ranks starts is a rank, and never starts anything itself."""

    def test_an_empty_rank_starts_no_ranks_of_ranks(self):
        for name in ("TUTTI_RANK", "TUTTI_SIZE", "TUTTI_LAUNCHER", "TUTTI_PERF_PARENT", "TUTTI_ID_FILE"):
            with self.subTest(name):
                outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL), {name: ""}, timeout=10)
                self.expect(outcome, 0, "0 OK")
                self.assertEqual(self.ranks_in(outcome), 2)

    def test_somebody_elses_variables_do_not_reach_them(self):
        outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL),
                      {"TUTTI_LAUNCHER": "none", "TUTTI_RANK": "7", "TUTTI_LOCAL_RANK": "9", "TUTTI_LOCAL_SIZE": "3",
                       "TUTTI_ROOT": "nowhere:1", "PMI_FD": "77"})
        self.expect(outcome, 0, "0 OK")

    def test_a_false_parent_is_told(self):
        self.expect(run("all_reduce_perf", ("--ranks", "2", *SMALL), {"TUTTI_PERF_PARENT": "77"}), 1,
                    "TUTTI_PERF_PARENT=77: no such process started this one.*unset it")

    def test_ranks_are_counted_before_any_is_started(self):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
        outcome = run("all_reduce_perf", ("--ranks", "4096", "-t", "4096", "-g", "4096"))
        self.expect(outcome, 1, "68719476736 ranks")
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before, 100_000)

    def test_numbers_out_of_range_are_refused(self):
        for value in ("-1", "4611686018427387904"):
            self.expect(run("all_reduce_perf", ("--ranks", "2", *SMALL, "-u", value)), 1, "from 0 to 1048576")


class Limits(Programs):
    """The text of an error names the limit behind it."""

    # Whoever is root has no limit of processes: a user with no other process than this one.
    LONELY = 54_321

    def few_processes(self, most):
        """For a process that is about to begin: it and all that it starts are so many at most."""
        def begin():
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(self.LONELY)
                os.setuid(self.LONELY)
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        return begin

    def test_of_processes(self):
        if perf_jobs.patience() > 1:
            self.skipTest("left to builds without sanitizers, which start threads before the program begins")
        program = os.path.join(os.environ["TUTTI_BIN_DIR"], "all_reduce_perf")
        for most in (1, 2, 3, 5, 10):
            for who in ("--ranks", "-t"):
                try:
                    ended = subprocess.run([program, who, "8", *SMALL], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                           check=False, timeout=60 * perf_jobs.patience(), cwd="/",
                                           preexec_fn=self.few_processes(most))
                except PermissionError:
                    self.skipTest("needs a build that another user can read")
                said = f"{who}, {most} processes: {ended.returncode}\n{ended.stdout}{ended.stderr}"
                self.assertEqual(ended.returncode, 1, said)
                self.assertRegex(ended.stderr, rf"may have no more processes and threads than the {most} of ulimit -u", said)


class Running(Programs):
    """Ranks while they run."""

    def start(self, arguments=(), settings=None):
        process = perf_jobs.start("all_reduce_perf", ("--ranks", "3", *ENDLESS, *arguments), settings)
        self.addCleanup(self.end, process)
        seen, deadline = b"", time.monotonic() + 30 * perf_jobs.patience()
        while b"\n      262144 " not in seen:
            self.assertTrue(select.select([process.stdout], [], [], deadline - time.monotonic())[0], seen)
            seen += os.read(process.stdout.fileno(), 4096)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
            return process, [int(pid) for pid in file.read().split()]

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def test_ps_names_the_ranks(self):
        _, children = self.start()
        shown = {}
        for pid in children:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                arguments = file.read().split("\0")
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                shown[arguments[0]] = file.read().strip()
            self.assertEqual(arguments[1:3], ["--ranks", "3"])
        self.assertEqual(shown, {f"all_reduce_perf: rank {rank}": "all_reduce_perf" for rank in range(3)})

    def test_who_is_behind_a_stopped_rank_is_not_blamed(self):
        process, children = self.start(("-T", "2"))
        os.kill(children[0], signal.SIGSTOP)
        outcome = perf_jobs.finish(process, "all_reduce_perf", 30 * perf_jobs.patience())
        self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
        for rank, other in ((1, 2), (2, 1)):
            self.assertRegex(outcome.errors, rf"rank {rank}: .*; at least 1 of 3 ranks have come; rank 0 \(.*\) does not answer; "
                             rf"rank {other} \(.*\) cannot be asked, for rank 0 passes nothing on", outcome.explain("blames"))

    def test_closed_standard_streams_get_nothing_of_the_library(self):
        program = os.path.join(os.environ["TUTTI_BIN_DIR"], "all_reduce_perf")
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            # What the library says goes to descriptor 2, whatever that is by then.
            command = [program, "--ranks", "2", *SMALL, "-J", report]
            ended = subprocess.run(["sh", "-c", 'exec "$@" <&- 2>&-', "-", *command], stdout=subprocess.PIPE, check=False,
                                   env={**os.environ, "TUTTI_DEBUG": "trace"}, timeout=60 * perf_jobs.patience())
            self.assertEqual(ended.returncode, 0, ended.stdout)
            with open(report, encoding="utf-8") as file:
                self.assertEqual(file.read(1), "{")

    def test_a_signal_leaves_no_half_of_a_file(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name), tempfile.TemporaryDirectory() as folder:
                files = [os.path.join(folder, name) for name in ("report.json", "plot.svg")]
                process, _ = self.start(("-J", files[0], "--plot", files[1]))
                os.kill(process.pid, number)
                outcome = perf_jobs.finish(process, "all_reduce_perf", 20)
                self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
                self.assertNotEqual(outcome.status, 0, outcome.explain("ends with 0"))
                self.assertEqual(os.listdir(folder), [])

    def test_sigusr2_without_a_folder_says_what_to_set(self):
        process, children = self.start()
        for pid in (process.pid, *children):
            os.kill(pid, signal.SIGUSR2)
        seen, deadline = b"", time.monotonic() + 20 * perf_jobs.patience()
        while seen.count(b"set TUTTI_DUMP_DIR to a folder") < 3:  # a rank may answer both at once, ours and the launcher's
            self.assertTrue(select.select([process.stderr], [], [], max(0, deadline - time.monotonic()))[0], seen)
            seen += os.read(process.stderr.fileno(), 4096)
        self.assertNotIn(b"signal", seen)
        self.assertIsNone(process.poll())
        self.assertTrue(all(os.path.exists(f"/proc/{pid}") for pid in children))

    @unittest.skipUnless(os.path.exists(os.path.join(os.environ["TUTTI_BIN_DIR"], "01_all_reduce")), "the examples are not built")
    def test_sigusr2_while_ranks_join_ends_nobody(self):
        with tempfile.TemporaryDirectory() as folder:
            root = f"127.0.0.1:{free_port()}"
            # The measuring programs hold the signal back themselves while they join.
            process = perf_jobs.start("01_all_reduce", (), {
                "TUTTI_SIZE": "2", "TUTTI_RANK": "0", "TUTTI_ROOT": root, "TUTTI_DUMP_DIR": folder})
            self.addCleanup(self.end, process)
            deadline = time.monotonic() + 20 * perf_jobs.patience()
            while not self.handles(process.pid, signal.SIGUSR2):
                self.assertLess(time.monotonic(), deadline, "nobody handles the signal while ranks join")
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGUSR2)
            seen = b""
            while b"SIGUSR2: no record is written" not in seen:
                self.assertTrue(select.select([process.stderr], [], [], max(0, deadline - time.monotonic()))[0], seen)
                more = os.read(process.stderr.fileno(), 4096)
                self.assertTrue(more, seen)
                seen += more
            self.assertIsNone(process.poll())

    @staticmethod
    def handles(pid, number):
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            caught = int(re.search(r"^SigCgt:\s*([0-9a-f]+)$", file.read(), re.MULTILINE).group(1), 16)
        return bool(caught >> (number - 1) & 1)

    def test_sigusr2_to_the_launcher_asks_every_rank(self):
        with tempfile.TemporaryDirectory() as folder:
            process, _ = self.start(settings={"TUTTI_DUMP_DIR": folder})
            os.kill(process.pid, signal.SIGUSR2)
            deadline = time.monotonic() + 20 * perf_jobs.patience()
            while len([name for name in os.listdir(folder) if name.endswith(".json")]) < 3:
                self.assertLess(time.monotonic(), deadline, os.listdir(folder))
                time.sleep(0.05)
            self.assertIsNone(process.poll())
            self.end(process)


class Output(Programs):
    def test_version(self):
        for program in PROGRAMS:
            outcome = run(program, ("--version",))
            self.expect(outcome, 0, rf"^{program} of tutti \d+\.\d+\.\d+\n$")

    def test_help_fits_80_columns_and_has_examples(self):
        for program in PROGRAMS:
            outcome = run(program, ("--help",))
            self.expect(outcome, 0, rf"\nExamples\n  {program} ")
            self.assertLessEqual(max(map(len, outcome.output.splitlines())), 80)

    def test_examples_of_the_help_run(self):
        lines = run("all_reduce_perf", ("--help",)).output.splitlines()
        examples = [line.split() for line in lines if re.match(r"  all_reduce_perf ", line)]
        self.assertGreaterEqual(len(examples), 3)
        with tempfile.TemporaryDirectory() as folder:
            for words in examples:
                arguments = [os.path.join(folder, word) if word.endswith(".json") else word for word in words[1:]]
                smaller = ("-b", "8", "-e", "64", "-n", "1", "-w", "0")
                self.expect(run("all_reduce_perf", (*arguments, *smaller)), 0, "0 OK")

    def run_into(self, path, arguments):
        with open(path, "wb") as output:
            program = os.path.join(os.environ["TUTTI_BIN_DIR"], "all_reduce_perf")
            return subprocess.run([program, *arguments], stdout=output, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=60 * perf_jobs.patience())

    def test_a_full_disk_is_a_failure(self):
        for arguments in (("--ranks", "2", *SMALL), ("-t", "2", *SMALL), ("--help",), ("--version",)):
            with self.subTest(arguments):
                done = self.run_into("/dev/full", arguments)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr, "all_reduce_perf: cannot write to standard output: No space left on device\n")
        for option in ("-J", "--plot"):
            with self.subTest(option):
                self.expect(run("all_reduce_perf", ("--ranks", "2", *SMALL, option, "/dev/full")), 1,
                            "cannot write /dev/full: No space left on device")
        self.assertFalse(os.path.exists("/dev/full.0"))

    # What is made first must not get its number, and be written to in its place.
    def test_a_closed_output_is_a_failure(self):
        program = os.path.join(os.environ["TUTTI_BIN_DIR"], "all_reduce_perf")
        for closed in (1, 2):
            for arguments in (("--ranks", "2", *SMALL), ("-t", "2", *SMALL)):
                with self.subTest(closed=closed, arguments=arguments):
                    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                                          env=dict(os.environ, TUTTI_DEBUG="trace"), timeout=60 * perf_jobs.patience(),
                                          preexec_fn=lambda fd=closed: os.close(fd))
                    if closed == 1:
                        self.assertEqual(done.returncode, 1, done.stderr)
                        self.assertIn("cannot write to standard output: Bad file descriptor", done.stderr)
                    else:
                        self.assertEqual(done.returncode, 0, done.stdout)
                        self.assertIn("0 OK", done.stdout)

    def test_half_a_file_does_not_stay(self):
        program = os.path.join(os.environ["TUTTI_BIN_DIR"], "all_reduce_perf")
        for option in ("-J", "--plot"):
            with self.subTest(option), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "a")
                done = subprocess.run([program, "-b", "8", "-e", "256", "-i", "8", "-n", "1", option, path], capture_output=True,
                                      text=True, check=False, timeout=60 * perf_jobs.patience(),
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"cannot write {path}: File too large", done.stderr)
                self.assertEqual(os.listdir(folder), [])

    def test_what_cannot_be_written_is_told_before_the_first_line(self):
        for option in ("-J", "--plot"):
            outcome = run("all_reduce_perf", ("-t", "2", *SMALL, option, "/nowhere/a"))
            self.expect(outcome, 1, "cannot write /nowhere/a")
            self.assertNotIn("float", outcome.output)

    def test_a_folder_is_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for option in ("-J", "--plot"):
                outcome = run("all_reduce_perf", ("-t", "2", *SMALL, option, folder))
                self.expect(outcome, 1, f"cannot write {re.escape(folder)}: .*(folder|directory)")
                self.assertNotIn("float", outcome.output)
            self.assertFalse(os.path.exists(folder + ".0"))

    def test_a_link_to_nowhere_stays_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            path, target = os.path.join(folder, "a"), os.path.join(folder, "absent")
            os.symlink(target, path)
            outcome = run("all_reduce_perf", ("-t", "2", *SMALL, "--plot", path))
            self.expect(outcome, 1, f"cannot write {re.escape(path)}: it is a link to what is not there")
            self.assertNotIn("float", outcome.output)
            self.expect(run("all_reduce_perf", ("-t", "2", *SMALL, "-J", path)), 0)
            self.assertEqual(sorted(os.listdir(folder)), ["a", "a.0"])
            self.assertEqual(os.readlink(path), target)

    def test_a_pipe_is_opened_when_there_is_something_to_write(self):
        for option, begin in (("-J", "{"), ("--plot", "<svg ")):
            with self.subTest(option), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "pipe")
                os.mkfifo(path)
                process = perf_jobs.start("all_reduce_perf", ("-t", "2", *SMALL, option, path))
                try:
                    begun = select.select([process.stdout], [], [], 20 * perf_jobs.patience())[0]
                    self.assertTrue(begun, "waits for a reader before it has measured")
                    with open(path, encoding="utf-8") as reader:
                        self.assertTrue(reader.read().startswith(begin))
                    self.expect(perf_jobs.finish(process, "all_reduce_perf", 20), 0)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))

    def test_a_picture_replaces_what_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plot.svg")
            with open(path, "w", encoding="utf-8") as file:
                file.write("mine" * 10_000)
            self.expect(run("all_reduce_perf", ("-t", "2", *SMALL, "--plot", path)), 0)
            with open(path, encoding="utf-8") as file:
                self.assertRegex(file.read(), r"^<svg [^\0]*</svg>\n$")
            help_text = " ".join(run("all_reduce_perf", ("--help",)).output.split())
            self.assertIn("to an SVG file; an existing one is replaced", help_text)

    def test_bandwidth_that_is_no_number_is_refused(self):
        for name in ("TUTTI_TESTS_MIN_BW", "NCCL_TESTS_MIN_BW"):
            for value in ("abc", "-1", "nan"):
                outcome = run("all_reduce_perf", ("--ranks", "2", *SMALL), {name: value})
                self.expect(outcome, 1, f"{name}={value}: expected GB/s, a number from 0")
                self.assertEqual(outcome.output, "")

    def test_report_hides_what_is_not_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            settings = {"https_proxy": "http://me:hidden1@proxy", "MY_TOKEN": "hidden2", "TUTTI_SECERT": "hidden3",
                        "TUTTI_SECRET": "hidden4", "TUTTI_CHANNELS": "2"}
            for who in ("--ranks", "-t"):
                self.expect(run("all_reduce_perf", (who, "2", *SMALL, "-J", path), settings), 0)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                os.unlink(path)
                self.assertNotIn("hidden", text)
                report = json.loads(text)
                self.assertIn("TUTTI_CHANNELS=2", report["env"])
                self.assertRegex(report["args"][0], "^/.*all_reduce_perf$")
                # It is in the file that the ranks of --ranks are given.
                self.assertEqual("TUTTI_SECRET=(set, not shown)" in report["env"], who == "-t")

    def test_progress_goes_to_a_terminal_alone(self):
        arguments = ("-t", "2", "-b", "8", "-e", "64K", "-f", "8", "-n", "20")
        quiet = run("all_reduce_perf", arguments)
        self.expect(quiet, 0)
        self.assertEqual(quiet.errors, "")
        told = run("all_reduce_perf", (*arguments, "--progress", "1"))
        self.expect(told, 0)
        self.assertRegex(told.errors, r"line 1 of 5: ")
        self.assertNotRegex(told.output, r"line \d of 5")
        for switch, shown in (((), True), (("--progress", "0"), False)):
            output, errors = self.on_a_terminal((*arguments, *switch))
            self.assertNotIn(b"line ", output)
            self.assertEqual(b"line 1 of 5: " in errors, shown, errors)

    @staticmethod
    def on_a_terminal(arguments):
        """What goes to standard output, and what to a standard error that is a terminal."""
        ours, theirs = pty.openpty()
        program = os.path.join(os.environ["TUTTI_BIN_DIR"], "all_reduce_perf")
        with subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=theirs) as process:
            output = process.communicate()[0]
        os.close(theirs)
        errors = b""
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                errors += piece
        os.close(ours)
        return output, errors

    def test_single_iterations_say_why_time_may_be_less(self):
        outcome = run("all_reduce_perf", ("-t", "2", *SMALL, "-I"))
        self.expect(outcome, 0, r"\n# time is .*\(-a 1\): it may be less than i_min")


if __name__ == "__main__":
    unittest.main()
