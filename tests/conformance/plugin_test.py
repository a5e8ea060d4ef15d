#!/usr/bin/env python3
"""Transports in shared objects: the one of examples/04_transport.c passes what every transport has to pass, and carries jobs;
what is no transport is refused by name.

    tests/conformance/plugin_test.py --bin build/release/bin
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Plugins(unittest.TestCase):
    BIN = Path(os.environ.get("TUTTI_BIN_DIR", "."))
    EXAMPLE = ROOT  # set by main()

    def run_program(self, name, *words, plugins=None, **variables):
        environment = dict(os.environ, TUTTI_TRANSPORT_PLUGINS=str(plugins or self.EXAMPLE), **variables)
        done = subprocess.run([self.BIN / name, *words], env=environment, capture_output=True, text=True,
                              timeout=120 * PATIENCE)
        return done.returncode, done.stdout + done.stderr

    def all_reduce(self, *words, **more):
        return self.run_program("all_reduce_perf", "-b", "8", "-e", "1M", "-f", "32", "-n", "5", "-w", "1", "-c", "1", *words,
                                **more)

    def test_conformance(self):
        status, said = self.run_program("tutti_conformance_tests", "--gtest_filter=*LinkTest.*/example")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"\[  PASSED  \] \d\d tests")

    def test_all_collectives(self):
        programs = sorted(one.name for one in self.BIN.glob("*_perf"))
        self.assertGreater(len(programs), 8)
        for program in programs:
            for ranks in ("2", "3"):
                status, said = self.run_program(program, "--ranks", ranks, "--transport", "example", "-b", "8", "-e", "256K", "-f",
                                                "32", "-n", "3", "-w", "1", "-c", "1")
                self.assertEqual(status, 0, f"{program} {said}")
                self.assertIn("Out of bounds values : 0 OK", said)

    def test_sends_from_where_it_may_be_held(self):
        """Through all kinds of memory the same comes out; that it went straight, tests/conformance/holding_test.cc sees."""
        for kind in ("1", "2"):
            status, said = self.all_reduce("--ranks", "3", "--transport", "example", "-R", kind)
            self.assertEqual(status, 0, said)
            self.assertIn("Out of bounds values : 0 OK", said)

    def test_takes_its_place_among_the_others(self):
        status, said = self.all_reduce("--ranks", "2", TUTTI_DEBUG="info")
        self.assertEqual(status, 0, said)
        self.assertIn("links in a host", said)
        self.assertRegex(said, r"links in a host +shm \(not p2p")
        status, said = self.all_reduce("--ranks", "2", "--transport", "^p2p,shm,tcp", TUTTI_DEBUG="info")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"links in a host +example \(not p2p")

    def refused(self, path, *texts):
        status, said = self.all_reduce("--ranks", "2", plugins=path)
        self.assertNotEqual(status, 0)
        for text in ("TUTTI_TRANSPORT_PLUGINS", str(path), *texts):
            self.assertIn(text, said)

    def test_what_is_no_transport_is_refused(self):
        self.refused("/no/such/file.so", "cannot open shared object file")
        self.refused(__file__, "invalid ELF header")
        with tempfile.TemporaryDirectory() as folder:
            for name, source, text in BROKEN:
                self.refused(self.compiled(folder, name, source), text)

    def test_two_of_one_name_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder) / "libother.so"
            shutil.copy(self.EXAMPLE, other)
            status, said = self.all_reduce("--ranks", "2", plugins=f"{self.EXAMPLE},{other}")
        self.assertNotEqual(status, 0)
        self.assertIn("two transports are called example", said)

    def compiled(self, folder, name, source):
        file, made = Path(folder) / f"{name}.c", Path(folder) / f"{name}.so"
        file.write_text("#include <tutti/transport.h>\n" + source)
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-I{ROOT / 'include'}", file, "-o", made], check=True)
        return made


TABLE = """static const tuttiTransport table = {%s};
const tuttiTransport* tuttiTransportEntry(const tuttiTransportHost* host, char* text, size_t room) { return &table; }
"""
BROKEN = [
    ("noentry", "int other;\n", "no function tuttiTransportEntry"),
    ("abi", TABLE % ".abi = 77", "made for interface 77"),
    ("old", TABLE % ".abi = 1", "made for interface 1, this library has 3"),
    ("noname", TABLE % ".abi = TUTTI_TRANSPORT_ABI", "'' is no name"),
    ("badname", TABLE % '.abi = TUTTI_TRANSPORT_ABI, .name = "Bad,Name"', "'Bad,Name' is no name"),
    ("speed", TABLE % '.abi = TUTTI_TRANSPORT_ABI, .name = "x", .latencyUs = -1', "latency of -1"),
    ("holes", TABLE % '.abi = TUTTI_TRANSPORT_ABI, .name = "x", .bandwidthGBs = 1', "x lacks a function"),
    ("half", """static int usable(const tuttiTransportRank* self, tuttiTransportSettings settings, char* text, size_t room) { return 1; }
static void* open(const tuttiTransportEdge* edge, const tuttiTransportLine* line, char* text, size_t room) { return 0; }
static tuttiTransportProgress move(void* connection) { return tuttiTransportIdle; }
static int sending(void* connection) { return 0; }
static int interest(void* connection, short* events) { return -1; }
static void error(void* connection, char* text, size_t room) {}
static void end(void* connection) {}
static int hold(void* connection, const tuttiTransportMemory* memory) { return 1; }
""" + TABLE % """.abi = TUTTI_TRANSPORT_ABI, .name = "x", .bandwidthGBs = 1, .usable = usable, .open = open, .connect = move,
.progress = move, .sending = sending, .interest = interest, .error = error, .close = end, .hold = hold""",
     "x has some of hold, letGo, takeBack and forget, but not all"),
    ("refuses", """const tuttiTransport* tuttiTransportEntry(const tuttiTransportHost* host, char* text, size_t room) {
  for (size_t i = 0; i < room; ++i) text[i] = "no \\n"[i % 4];  /* without an end */
  return 0;
}
""", "no \\x0a"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("TUTTI_BIN_DIR"), help="where the programs are")
    known, rest = parser.parse_known_args()
    Plugins.BIN = Path(known.bin or ".").resolve()
    Plugins.EXAMPLE = Plugins.BIN.parent / "lib/libtutti_example.so"
    if not Plugins.EXAMPLE.exists():
        parser.error(f"--bin: there is no {Plugins.EXAMPLE}")
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
