"""tutti-doctor net with real ranks on this host, and what TUTTI_PREFLIGHT tells before a job."""
import json
import os
import resource
import socket
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

BIN = os.environ["TUTTI_BIN_DIR"]
PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
SECONDS = 60 * PATIENCE


def environment(settings):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
    return {**kept, **{name: str(value) for name, value in settings.items()}}


def run(program, *arguments, files=None, **settings):
    """Exit status, standard output, standard error. `files`: how many may be open."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))  # noqa: E731
    done = subprocess.run([f"{BIN}/{program}", *arguments], env=environment(settings), capture_output=True, text=True,
                          check=False, timeout=SECONDS, preexec_fn=limit if files else None)
    return done.returncode, done.stdout, done.stderr


class Job:
    """Ranks started by hand, each on a host of its own name."""

    def __init__(self, commands, settings_of=lambda rank: {}, **settings):
        place = {"TUTTI_SIZE": len(commands), "TUTTI_ROOT": f"127.0.0.1:{free_port()}", "TUTTI_SECRET": "net",
                 "TUTTI_JOIN_TIMEOUT_MS": 20_000 * PATIENCE, **settings}
        self.ranks = []
        for rank, command in enumerate(commands):
            own = {"TUTTI_RANK": rank, "TUTTI_HOST_ID": f"n{rank}", **place, **settings_of(rank)}
            self.ranks.append(subprocess.Popen([f"{BIN}/{command[0]}", *command[1:]], env=environment(own), text=True,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def end(self):
        """Of each rank its status, standard output and standard error."""
        try:
            return [(rank.returncode, *texts) for rank in self.ranks for texts in [rank.communicate(timeout=SECONDS)]]
        finally:
            for rank in self.ranks:
                rank.kill()


DOCTOR = ("tutti-doctor", "net", "--json", "--timeout", str(5 * PATIENCE))
PERF = ("all_reduce_perf", "-b", "8", "-e", "8", "-n", "2", "-w", "1")


class Net(unittest.TestCase):
    def test_alone(self):
        status, said, errors = run("tutti-doctor", "net")
        self.assertIn(status, (0, 1), errors)
        self.assertIn("this host, which is of no job", said)
        self.assertRegex(said, r"(?m)^host +ranks +tutti ")
        self.assertRegex(said, r"\n(Nothing to mend|error|warning|hint)")

    def test_ranks_of_one_host(self):
        status, said, errors = run("tutti-doctor", "net", "--ranks", "3", "--json")
        self.assertIn(status, (0, 1), errors)
        told = json.loads(said)
        self.assertEqual((told["ranks"], len(told["hosts"]), told["broken"]), (3, 1, ""))
        self.assertEqual({(one["low"], one["high"], one["transport"], one["works"]) for one in told["pairs"]},
                         {(0, 1, "shm", True), (0, 2, "shm", True), (1, 2, "shm", True)})

    def test_as_a_table(self):
        status, said, errors = run("tutti-doctor", "net", "--ranks", "2")
        self.assertIn(status, (0, 1), errors)
        self.assertIn("2 ranks on 1 host\n", said)
        self.assertRegex(said, r"shm inside hosts:\nhost +host +ranks +there +back +latency\n\S+ +\S+ +0, 1 +\S+ GB/s")

    def test_ranks_of_several_hosts(self):
        ranks = Job([DOCTOR] * 4).end()
        self.assertEqual([status for status, _, _ in ranks[1:]], [0, 0, 0], ranks)
        self.assertIn(ranks[0][0], (0, 1), ranks)
        self.assertEqual([said for _, said, _ in ranks[1:]], ["", "", ""])
        told = json.loads(ranks[0][1])
        name = socket.gethostname()
        self.assertEqual([one["host"] for one in told["hosts"]], [f"{name}#{rank}" for rank in range(4)])
        pairs = {(one["low"], one["high"]): one for one in told["pairs"] if one["transport"] == "tcp"}
        self.assertEqual(sorted(pairs), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
        for one in pairs.values():
            self.assertTrue(one["works"], one)
            self.assertTrue(one["latency_us"] > 0 and one["there_gb_s"] > 0 and one["back_gb_s"] > 0, one)

    def test_a_transport_that_does_not_work_is_a_finding(self):
        status, said, errors = run("tutti-doctor", "net", "--ranks", "2", "--json", TUTTI_UNIX_SOCKETS=0)
        self.assertEqual(status, 1, errors)
        told = json.loads(said)
        self.assertFalse(told["pairs"][0]["works"])
        self.assertIn("TUTTI_UNIX_SOCKETS", told["pairs"][0]["why"])
        self.assertTrue(any("do not reach each other over shm" in one["what"] for one in told["findings"]), told)

    def test_a_rank_that_does_not_come(self):
        (status, said, errors), = Job([DOCTOR], TUTTI_SIZE=2, TUTTI_JOIN_TIMEOUT_MS=500).end()
        self.assertEqual(status, 2)
        self.assertRegex(errors, r"tutti-doctor: the ranks do not meet: .*missing: rank 1")
        told = json.loads(said)
        self.assertIn("missing: rank 1", told["broken"])
        self.assertEqual(len(told["hosts"]), 1)

    def test_a_rank_that_is_lost_on_the_way(self):
        """It runs another program, which gives up."""
        ranks = Job([DOCTOR, (*PERF, "--transport", "tcp")], TUTTI_OPERATION_TIMEOUT_MS=1000,
                    TUTTI_TRANSPORT="tcp").end()
        status, said, errors = ranks[0]
        self.assertEqual(status, 2, ranks)
        told = json.loads(said)
        self.assertIn("rank 1", told["broken"], errors)

    def test_wrong_words(self):
        for words in (["--ranks", "1"], ["--nonsense"], ["a folder"], ["--timeout", "0"]):
            status, said, errors = run("tutti-doctor", "net", *words)
            self.assertEqual((status, said), (2, ""), words)
            self.assertRegex(errors, r"^tutti-doctor: .*\nTry tutti-doctor net --help")
        status, said, _ = run("tutti-doctor", "net", "--help")
        self.assertEqual(status, 0)
        self.assertIn("--ranks", said)

    def test_half_of_what_a_launcher_says(self):
        status, said, errors = run("tutti-doctor", "net", TUTTI_RANK=0)
        self.assertEqual((status, said), (2, ""))
        self.assertIn("TUTTI_SIZE", errors)


class Preflight(unittest.TestCase):
    LINE = "TUTTI_PREFLIGHT: "

    def test_tells_what_is_lacking(self):
        status, said, errors = run(*PERF, "--ranks", "2", files=200, TUTTI_PREFLIGHT=1)
        self.assertEqual(status, 0, errors)
        self.assertEqual((said + errors).count("a process may have 200 open files"), 1, said + errors)

    def test_tells_nothing_unless_it_is_asked_for(self):
        status, said, errors = run(*PERF, "--ranks", "2", files=200)
        self.assertEqual(status, 0, errors)
        self.assertNotIn(self.LINE, said + errors)

    def test_any_rank_may_ask(self):
        ranks = Job([PERF] * 3, lambda rank: {"TUTTI_PREFLIGHT": 1} if rank == 2 else {}, TUTTI_DEBUG="info").end()
        self.assertEqual([status for status, _, _ in ranks], [0, 0, 0], ranks)
        self.assertIn(self.LINE + "3 hosts looked at", ranks[0][1] + ranks[0][2])
        for _, said, errors in ranks[1:]:
            self.assertNotIn(self.LINE, said + errors)

    def test_once_in_a_process(self):
        """-t: several communicators of one process; here two ranks, which share one."""
        status, said, errors = run(*PERF, "-t", "2", TUTTI_PREFLIGHT=1, TUTTI_DEBUG="info")
        self.assertEqual(status, 0, errors)
        self.assertEqual((said + errors).count(self.LINE + "1 host looked at"), 1, said + errors)


if __name__ == "__main__":
    sys.exit(unittest.main())
