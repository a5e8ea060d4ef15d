"""Four real ranks go wrong in a known way, and tutti-doctor must find out how from the records that they left."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["TUTTI_BIN_DIR"]
PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
RANKS = 4


def environment(folder):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("TUTTI_") or name == "TUTTI_TRANSPORT"}
    return {**kept, "TUTTI_DUMP_DIR": folder, "TUTTI_OPERATION_TIMEOUT_MS": str(700 * PATIENCE)}


def run_story(story, folder):
    """Starts the ranks, and waits for all of them: a story ends by itself."""
    ranks = [subprocess.Popen([f"{BIN}/tutti_stuck_job", story, str(rank), str(RANKS), f"{folder}/id"],
                              env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
             for rank in range(RANKS)]
    return "".join(rank.communicate(timeout=60 * PATIENCE)[0] for rank in ranks)


def ask_doctor(*arguments):
    done = subprocess.run([f"{BIN}/tutti-doctor", *arguments], capture_output=True, text=True, check=False,
                          timeout=60 * PATIENCE)
    return done.returncode, done.stdout, done.stderr


class Stories(unittest.TestCase):
    def expect(self, story, status, *patterns):
        with tempfile.TemporaryDirectory() as folder:
            said = run_story(story, folder)
            code, output, errors = ask_doctor(folder)
            self.assertEqual(code, status, f"{said}\n{output}\n{errors}")
            first = output.splitlines()[1]
            for pattern in patterns:
                self.assertRegex(first, pattern, f"{said}\n{output}")
            for rank in range(RANKS):
                self.assertRegex(output, rf"(?m)^{rank} ")

    def test_healthy(self):
        self.expect("healthy", 0, r"^Healthy: all ranks are idle and in step.*all-reduce #2")

    def test_another_collective(self):
        self.expect("kind", 1, r"^First divergence: ranks 0, 2, 3 wait in all-reduce #3 \(float, 4 KiB, sum\); "
                    r"rank 1 waits in broadcast #3 \(float, 4 KiB, root 0\)\.$")

    def test_another_count(self):
        self.expect("count", 1, r"ranks 0, 1 expect 1024 elements, ranks 2, 3 expect 2048 elements")

    def test_another_type(self):
        self.expect("type", 1, r"ranks 0-2 expect float elements, rank 3 expects double elements")

    def test_another_operator(self):
        self.expect("operator", 1, r"ranks 1-3 expect the operator sum, rank 0 expects the operator max")

    def test_another_root(self):
        self.expect("root", 1, r"ranks 0, 1, 3 expect rank 0 as the root, rank 2 expects rank 2 as the root")

    def test_a_rank_that_does_not_come(self):
        self.expect("late", 1, r"rank 2 has not come to all-reduce #3 .*in which ranks 0, 1, 3 wait: its last call was "
                    r"all-reduce #2 .*done .* before its record was written")

    def test_a_rank_that_dies(self):
        self.expect("dies", 1, r"rank 3 \(host .*, pid \d+\) left no record; ranks 0-2 say that it left")

    def test_a_chain_of_receives(self):
        self.expect("chain", 1, r"rank 2 waits in receive #0 from rank 3 .*rank 3 has made no such send")

    def test_a_circle_of_receives(self):
        self.expect("cycle", 1, r"ranks 0-3 wait for each other for ever")

    def test_messages_that_differ(self):
        self.expect("message", 1, r"rank 0 sends 512 float elements, rank 1 expects 1024 float elements")


class Settings(unittest.TestCase):
    def ask(self, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
        done = subprocess.run([f"{BIN}/tutti-doctor", "env"], env={**kept, **variables}, capture_output=True, text=True,
                              check=False, timeout=60 * PATIENCE)
        return done.returncode, done.stdout

    def test_values_and_defaults(self):
        code, output = self.ask(TUTTI_CHANNELS="3", TUTTI_SECRET="open sesame")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^TUTTI_CHANNELS +3 +0 *$")
        self.assertRegex(output, r"(?m)^TUTTI_JOIN_TIMEOUT_MS +- +60000 *$")
        self.assertRegex(output, r"(?m)^TUTTI_SECRET +\(set, not shown\)")
        self.assertNotIn("sesame", output)

    def test_a_misspelt_name(self):
        code, output = self.ask(TUTTI_CHANELS="3")
        self.assertEqual(code, 1)
        self.assertIn("TUTTI_CHANELS is not a setting; did you mean TUTTI_CHANNELS?", output)


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def test_a_trace(self):
        run_story("chain", self.folder)
        trace = os.path.join(self.folder, "trace.json")
        code, output, errors = ask_doctor(self.folder, "--trace", trace)
        self.assertEqual(code, 1, f"{output}\n{errors}")
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        processes = {event["pid"] for event in events if event["name"] == "process_name"}
        self.assertEqual(len(processes), RANKS)
        calls = [event for event in events if event["ph"] == "X"]
        self.assertEqual(len(calls), 3 * RANKS + 3)  # the sums, and three receives
        for event in calls:
            self.assertGreaterEqual(event["dur"], 0)
            self.assertGreaterEqual(event["ts"], 0)
            self.assertIn("algorithm", event["args"])

    def test_bad_files_are_named_and_the_others_read(self):
        run_story("healthy", self.folder)
        broken = os.path.join(self.folder, "tutti-rank3.json")
        with open(broken, "r+", encoding="utf-8") as file:
            file.truncate(700)
        code, output, errors = ask_doctor(self.folder)
        self.assertEqual(code, 2)
        self.assertRegex(errors, re.escape(broken) + ": not a whole JSON text")
        self.assertRegex(output, "4 ranks, 3 records; none of rank 3")

    def test_two_of_one_rank(self):
        run_story("healthy", self.folder)
        paths = [os.path.join(self.folder, name) for name in ("tutti-rank0.json", "copy.json")]
        with open(paths[0], encoding="utf-8") as one, open(paths[1], "w", encoding="utf-8") as two:
            two.write(one.read())
        code, _, errors = ask_doctor(*paths)
        self.assertEqual(code, 2)
        self.assertRegex(errors, "copy.json: is of rank 0")

    def test_nothing_to_read(self):
        for arguments in ([self.folder], [os.path.join(self.folder, "none.json")], [], ["--nonsense"]):
            code, _, errors = ask_doctor(*arguments)
            self.assertEqual(code, 2, errors)
            self.assertTrue(errors)


if __name__ == "__main__":
    sys.exit(unittest.main())
