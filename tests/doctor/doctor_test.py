"""Four real ranks go wrong in a known way, and tutti-doctor must find out how from the records that they left."""
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
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


def some(*ranks):
    """At least one of them, in the doctor's words: what does not fit is told when two ranks have met, and who was not yet
    in that call then is not in it any more."""
    texts = [f"rank {rank}" for rank in ranks]
    for size in range(2, len(ranks) + 1):
        for chosen in itertools.combinations(ranks, size):
            row = size > 2 and chosen[-1] - chosen[0] == size - 1
            texts.append(f"ranks {chosen[0]}-{chosen[-1]}" if row else "ranks " + ", ".join(map(str, chosen)))
    return f"(?:{'|'.join(texts)})"


class Stories(unittest.TestCase):
    def expect(self, story, status, *patterns):
        with tempfile.TemporaryDirectory() as folder:
            said = run_story(story, folder)
            code, output, errors = ask_doctor(folder)
            self.assertEqual(code, status, f"{said}\n{output}\n{errors}")
            for line in output.split("\n\n")[0].splitlines():
                self.assertLessEqual(len(line), 100, output)
            first = re.sub(r"\n +", " ", output).splitlines()[1]
            for pattern in patterns:
                self.assertRegex(first, pattern, f"{said}\n{output}")
            for rank in range(RANKS):
                self.assertRegex(output, rf"(?m)^{rank} ")

    def test_healthy(self):
        self.expect("healthy", 0, r"^Healthy: all ranks are idle and in step.*all-reduce #2")

    def test_another_collective(self):
        self.expect("kind", 1, rf"^First divergence: {some(0, 2, 3)} waits? in all-reduce #3 \(float, 4 KiB, sum\); "
                    r"rank 1 waits in broadcast #3 \(float, 4 KiB, root 0\)\.$")

    def test_another_count(self):
        self.expect("count", 1, rf"{some(0, 1)} expects? 1024 elements, {some(2, 3)} expects? 2048 elements")

    def test_another_type(self):
        self.expect("type", 1, rf"{some(0, 1, 2)} expects? float elements, rank 3 expects double elements")

    def test_another_operator(self):
        self.expect("operator", 1, rf"{some(1, 2, 3)} expects? the operator sum, rank 0 expects the operator max")

    def test_another_root(self):
        self.expect("root", 1, rf"{some(0, 1, 3)} expects? rank 0 as the root, rank 2 expects rank 2 as the root")

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

    def test_files_of_settings(self):
        with tempfile.TemporaryDirectory() as folder:
            own = pathlib.Path(folder, ".tutti.conf")
            own.write_text("TUTTI_CHANNELS=3\nTUTTI_CHANELS=3\n# TUTTI_ALGO=magic\nTUTTI_ALGO=magic\nnonsense\n")
            code, output = self.ask(HOME=folder)
            self.assertEqual(code, 1, output)
            self.assertRegex(output, r"(?m)^TUTTI_CHANNELS +3 +0 *$")
            self.assertIn(f"with the settings of {own}", output)
            self.assertIn("TUTTI_CHANELS is not a setting; did you mean TUTTI_CHANNELS?", output)
            self.assertEqual(output.count("'magic' is no algorithm"), 1, output)
            self.assertIn(f"{own}, line 5: expected TUTTI_NAME=VALUE", output)
            code, output = self.ask(HOME=folder, TUTTI_CONF_FILE=f"{folder}/none")
            self.assertEqual(code, 1, output)
            self.assertIn(f"TUTTI_CONF_FILE={folder}/none: {folder}/none cannot be read: No such file", output)

    def test_values_that_the_library_would_refuse(self):
        wrong = {"TUTTI_CHANNELS": "65", "TUTTI_VERIFY": "2", "TUTTI_ALGO": "magic", "TUTTI_TRANSPORT": "pigeon",
                 "TUTTI_DEVICE": "tpu", "TUTTI_ENGINE": "steam", "TUTTI_PROTOCOL": "x", "TUTTI_DEBUG": "loud",
                 "TUTTI_PORT_RANGE": "9-1", "TUTTI_JOIN_TIMEOUT_MS": "soon", "TUTTI_LAUNCHER": "nobody"}
        for name, value in wrong.items():
            with self.subTest(name):
                code, output = self.ask(**{name: value})
                self.assertEqual(code, 1, output)
                self.assertEqual(len(re.findall(rf"(?m)^{name}={value}: ", output)), 1, output)
        code, output = self.ask(**wrong)
        self.assertEqual(code, 1, output)
        for name, value in wrong.items():
            self.assertEqual(len(re.findall(rf"(?m)^{name}={value}: ", output)), 1, output)
        for half in ({"TUTTI_RANK": "0"}, {"RANK": "1"}):
            code, output = self.ask(**half)
            self.assertEqual(code, 1, output)
            self.assertRegex(output, r"(?m)^\w+=[01] is set but \w+ is not")

    def test_env_takes_no_arguments(self):
        code, _, errors = ask_doctor("env", "x")
        self.assertEqual(code, 2)
        self.assertIn("env takes no arguments", errors)


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

    def test_a_trace_replaces_nothing(self):
        run_story("healthy", self.folder)
        record = os.path.join(self.folder, "tutti-rank0.json")
        with open(record, encoding="utf-8") as file:
            before = file.read()
        code, output, errors = ask_doctor(self.folder, "--trace", record)
        self.assertEqual((code, output), (2, ""))
        self.assertIn(f"{record}: is there already", errors)
        with open(record, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(ask_doctor(self.folder, "--trace", "/dev/null")[0], 0)

    def test_a_full_disk_is_a_failure(self):
        run_story("healthy", self.folder)
        for arguments in ([self.folder], ["env"], ["--help"], ["--version"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([f"{BIN}/tutti-doctor", *arguments], stdout=full, stderr=subprocess.PIPE,
                                      text=True, check=False, timeout=60 * PATIENCE)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr,
                                 "tutti-doctor: cannot write to standard output: No space left on device\n")
        code, _, errors = ask_doctor(self.folder, "--trace", "/dev/full")
        self.assertEqual(code, 2)
        self.assertRegex(errors, "/dev/full: the trace cannot be written there: No space left on device")

    def test_half_a_trace_does_not_stay(self):
        run_story("healthy", self.folder)
        trace = os.path.join(self.folder, "trace.json")
        done = subprocess.run([f"{BIN}/tutti-doctor", self.folder, "--trace", trace], capture_output=True, text=True,
                              check=False, timeout=60 * PATIENCE,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{trace}: the trace cannot be written there: File too large", done.stderr)
        self.assertFalse(os.path.exists(trace))

    def test_version_and_help(self):
        code, output, _ = ask_doctor("--version")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"^tutti-doctor of tutti \d+\.\d+\.\d+\n$")
        code, output, _ = ask_doctor("--help")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"Usage: tutti-doctor .*FILES.*\n +tutti-doctor env\n")

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

    def test_a_folder_that_may_not_be_read(self):
        path = os.path.join(self.folder, "closed")
        os.mkdir(path, 0o300)
        command = [f"{BIN}/tutti-doctor", path]
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                self.skipTest("as root, needs setpriv")
            os.chmod(self.folder, 0o711)
            command = ["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", *command]
            if subprocess.run([*command[:-2], f"{BIN}/tutti-doctor", "--version"], capture_output=True,
                              check=False).returncode != 0:
                self.skipTest("another user may not run what was built here")
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * PATIENCE)
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"tutti-doctor: {path}: this folder cannot be read: Permission denied\n"))

    def test_nothing_to_read(self):
        for arguments in ([self.folder], [os.path.join(self.folder, "none.json")], [], ["--nonsense"]):
            code, _, errors = ask_doctor(*arguments)
            self.assertEqual(code, 2, errors)
            self.assertRegex(errors, "^tutti-doctor: ")


if __name__ == "__main__":
    sys.exit(unittest.main())
