"""TUTTI_TRACE: a file that Perfetto opens, with every call of every rank, and what they waited for within them."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import perf_jobs

RANKS = 3


def run(path, program, *options, before=""):
    words = [os.path.join(os.environ["TUTTI_BIN_DIR"], program), "--ranks", str(RANKS), *options]
    if before:
        words = ["sh", "-c", f'{before}; exec "$0" "$@"', *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100 * perf_jobs.patience(),
                          env=dict(os.environ, TUTTI_TRACE=path))
    return done.returncode, done.stdout + done.stderr


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(file.read().rstrip().rstrip(",") + "]")


def rows_of(events):
    """The slices of each row, by process and number; and its name."""
    names, slices = {}, collections.defaultdict(list)
    for event in events:
        row = event["pid"], event["tid"]
        if event["ph"] == "X":
            slices[row].append(event)
        elif event["name"] == "thread_name":
            names[row] = event["args"]["name"]
    return {names[row]: of_row for row, of_row in slices.items()}


def rank_of(row):
    return int(re.match(r"rank (\d+) of \d+, communicator [0-9a-f]+: ", row)[1])


class TestTrace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "trace.json")

    def traced(self, program, *options):
        status, said = run(self.path, program, *options)
        self.assertEqual(status, 0, said)
        return rows_of(read(self.path))

    def expect_in_order(self, rows):
        for name, slices in rows.items():
            slices.sort(key=lambda one: one["ts"])
            for one, other in zip(slices, slices[1:]):
                self.assertLessEqual(one["ts"] + one["dur"], other["ts"] + 0.1, name)  # doubles

    def test_every_rank_has_every_call(self):
        # Queued on a stream, and more than the flight recorder keeps.
        rows = self.traced("all_reduce_perf", "-b", "64K", "-e", "64K", "-n", "400", "-w", "2", "-c", "0")
        self.expect_in_order(rows)
        mine = {rank_of(row): slices for row, slices in rows.items() if row.endswith(": collectives")}
        self.assertEqual(sorted(mine), list(range(RANKS)))
        for slices in mine.values():
            self.assertEqual([one["name"] for one in slices], [one["name"] for one in mine[0]])
            sums = [one for one in slices if one["args"]["bytes"] == 65536 and one["args"]["type"] == "float"]
            self.assertEqual(len(sums), 2 * 400 + 2)  # out of place and in place, and what warms up
            for one in sums:
                self.assertRegex(one["name"], r"^all-reduce #\d+$")
                self.assertRegex(one["args"]["plan"], r"^\w+ over \d+ channels?$")
                self.assertEqual(one["args"]["count"], 16384)

    def test_waits_lie_within_their_calls(self):
        rows = self.traced("all_gather_perf", "-b", "1M", "-e", "4M", "-f", "2", "-n", "5")
        self.expect_in_order(rows)
        waits = {row: slices for row, slices in rows.items() if "waits of channel" in row}
        self.assertTrue(waits)
        for row, slices in waits.items():
            calls = rows[row.partition(", waits of")[0]]
            for wait in slices:
                self.assertNotEqual(wait["args"]["peer"], rank_of(row))
                self.assertIn(wait["args"]["peer"], range(RANKS))
                self.assertTrue(any(call["ts"] - 1 <= wait["ts"] and
                                    wait["ts"] + wait["dur"] <= call["ts"] + call["dur"] + 1 for call in calls), row)

    def test_messages_have_rows_of_their_own(self):
        rows = self.traced("sendrecv_perf", "-b", "8", "-e", "8", "-n", "3")
        for rank in range(RANKS):
            after, before = (rank + 1) % RANKS, (rank - 1) % RANKS
            for name, what in ((f"sends to rank {after}", "send"), (f"receives from rank {before}", "receive")):
                found = [slices for row, slices in rows.items() if rank_of(row) == rank and row.endswith(f": {name}")]
                self.assertEqual(len(found), 1, name)
                self.assertTrue(all(re.fullmatch(rf"{what} #\d+", one["name"]) for one in found[0]))

    def test_a_second_run_is_appended(self):
        small = ("-b", "8", "-e", "8", "-n", "1", "-w", "0", "-c", "0")
        first = self.traced("all_reduce_perf", *small)
        both = self.traced("all_reduce_perf", *small)
        self.assertEqual(len(both), 2 * len(first))

    def test_a_file_a_process(self):
        status, said = run(os.path.join(self.folder.name, "%h-%p.json"), "all_reduce_perf", "-b", "8", "-e", "8")
        self.assertEqual(status, 0, said)
        files = os.listdir(self.folder.name)
        self.assertEqual(len(files), RANKS)
        for name in files:
            self.assertTrue(name.startswith(os.uname().nodename + "-"))
            self.assertEqual(os.stat(os.path.join(self.folder.name, name)).st_mode & 0o777, 0o600)
            self.assertEqual(len({rank_of(row) for row in rows_of(read(os.path.join(self.folder.name, name)))}), 1)

    def test_the_job_goes_on_without_a_file(self):
        fifo = os.path.join(self.folder.name, "fifo")
        os.mkfifo(fifo)
        for path in (self.folder.name, os.path.join(self.folder.name, "none", "trace.json"), "/dev/null", fifo):
            status, said = run(path, "all_reduce_perf", "-b", "8", "-e", "8")
            self.assertEqual(status, 0, said)
            self.assertEqual(said.count(f"TUTTI_TRACE={path}: "), RANKS, said)

    @unittest.skipIf(perf_jobs.patience() > 1, "sanitizers write files of their own")
    def test_the_job_goes_on_when_the_file_is_full(self):
        status, said = run(self.path, "all_reduce_perf", "-b", "8", "-e", "1K", "-n", "200", before="ulimit -f 16")
        self.assertEqual(status, 0, said)
        self.assertIn("nothing is traced there from here on", said)


if __name__ == "__main__":
    unittest.main()
