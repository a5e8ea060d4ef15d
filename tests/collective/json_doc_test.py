"""docs/json.md has every key of the reports and records that are written, and no other; what it calls a text is one, and
what it says in numbers is a number."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import perf_jobs

SMALL = ("-b", "8", "-e", "64", "-f", "8", "-n", "2", "-w", "0")


# What the document says of some keys tells their type.
TYPES = ((r"\ba text\b|hex digits|local time|texts? of|data type", str),
         (r"10000 major|nanoseconds|^counts |^bytes$|^percentiles", (int, float)))


def documented():
    """The keys of each chapter's table with what they hold, by the chapter's title."""
    with open(os.path.join(HERE, "..", "..", "docs", "json.md"), encoding="utf-8") as file:
        chapters = re.split(r"^## ", file.read(), flags=re.MULTILINE)[1:]
    return {chapter.split("\n", 1)[0]: re.findall(r"^\| `([^`]+)` \|[^|]*\| *(.*?) *\|$", chapter, re.MULTILINE)
            for chapter in chapters}


def keys_of(value, path=""):
    """a[].b for the key b of the elements of the list a; with it the type of what it holds, but for objects and lists."""
    if isinstance(value, list):
        return {key for element in value for key in keys_of(element, path + "[]")}
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        plain = None if isinstance(inner, (dict, list)) else type(inner)
        found |= {(here, plain)} | keys_of(inner, here)
    return found


def same(key):
    """What the document describes once."""
    key = re.sub(r"\.in_place((_per_iter)?)\.", r".out_of_place\1.", key)
    key = re.sub(r"^others\[\]", "choice", key)
    return re.sub(r"^config\.devices\[\]", "devices[]", key)


class JsonDocument(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compare(self, chapter, found, elsewhere=()):
        rows = documented()[chapter]
        keys = [key for key, _ in rows if key not in elsewhere]
        self.assertEqual(len(keys), len(set(keys)), "a key is there twice")
        self.assertEqual(sorted({same(key) for key, _ in found}), sorted(keys))
        holds, tried = dict(rows), set()
        for key, plain in found:
            for words, types in TYPES:
                if plain not in (None, type(None)) and re.search(words, holds[same(key)]):
                    self.assertTrue(issubclass(plain, types), f"{key}: {holds[same(key)]}; it is {plain}")
                    tried.add(words)
        self.assertEqual(len(tried), len(TYPES), "no row tells of a type: have its words changed?")

    def run_program(self, program, arguments, settings=None):
        outcome = perf_jobs.run(program, arguments, settings)
        self.assertIsNotNone(outcome.status, outcome.explain("hangs"))
        return outcome

    def test_explanations(self):
        report = os.path.join(self.folder, "report.json")
        # The library's own test notes in its report what it was told.
        subprocess.run([os.path.join(os.environ["TUTTI_BIN_DIR"], "tutti_collective_tests"), "--gtest_filter=Explain.TellsTheSameAsJson",
                        f"--gtest_output=json:{report}"], check=True, stdout=subprocess.DEVNULL, timeout=100)
        with open(report, encoding="utf-8") as file:
            told = json.load(file)["testsuites"][0]["testsuite"][0]["explanation"]
        self.compare("How a call would run", keys_of(json.loads(told)), {"choice.protocol", "ring_order"})  # which GPUs have

    def test_reports(self):
        found = set()
        for number, options in enumerate((("-I", "-M"), ("-C", "-f", "1"))):
            path = os.path.join(self.folder, f"{number}.json")
            outcome = self.run_program("all_reduce_perf", ("--ranks", "2", *SMALL, *options, "-J", path))
            self.assertEqual(outcome.status, 0, outcome.explain("fails"))
            with open(path, encoding="utf-8") as file:
                found |= keys_of(json.load(file))
        self.compare("The report of a measuring program", found)

    def records(self):
        for name in os.listdir(self.folder):
            if name.endswith(".json"):
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    yield json.load(file)

    def keys_left_by(self, program, stop, *options):
        """Runs without end, lets `stop` end it, and returns the keys of the records that were left."""
        process = perf_jobs.start(program, ("--ranks", "2", "-b", "256K", "-e", "256K", "-N", "0", *options),
                                  {"TUTTI_DUMP_DIR": self.folder})
        try:
            seen = b""
            while b"\n      262144 " not in seen:
                piece = os.read(process.stdout.fileno(), 4096)
                self.assertTrue(piece, f"ended early: {seen}")
                seen += piece
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
                stop(process, [int(pid) for pid in file.read().split()])
        finally:
            perf_jobs.finish(process, program, 30)
        return {key for record in self.records() for key in keys_of(record)}

    def wait_for_records(self, count):
        deadline = time.monotonic() + 20 * perf_jobs.patience()
        while len(list(self.records())) < count:
            self.assertLess(time.monotonic(), deadline, os.listdir(self.folder))
            time.sleep(0.05)

    def test_records(self):
        def ask(process, ranks):
            before = len(list(self.records()))
            os.kill(process.pid, signal.SIGUSR2)
            self.wait_for_records(before + len(ranks))
            os.kill(process.pid, signal.SIGTERM)

        found = self.keys_left_by("reduce_perf", ask) | self.keys_left_by("sendrecv_perf", ask, "--persistent", "1")
        # A rank that is stopped keeps the other in its call, whose record then says whom it waits for.
        def leave(_, ranks):
            os.kill(ranks[1], signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(ranks[1], signal.SIGKILL)

        found |= self.keys_left_by("all_reduce_perf", leave)
        self.compare("The record of a rank", found)


if __name__ == "__main__":
    unittest.main()
