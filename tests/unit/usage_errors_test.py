"""What the commands that are run by hand say when they are called wrongly: what is wrong, in one line, and the status 2."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BIN = os.environ["TUTTI_BIN_DIR"]


class UsageErrors(unittest.TestCase):
    def expect(self, command, text, lines=1):
        kept = {name: value for name, value in os.environ.items() if name != "TUTTI_BIN_DIR"}
        done = subprocess.run(command, cwd=ROOT, env=kept, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(text, done.stderr)
        if lines:
            self.assertEqual(len(done.stderr.splitlines()), lines, done.stderr)

    def test_acceptance_without_programs(self):
        for command in (["programs", "--bin", "/nowhere"], ["proofs", "/nowhere"], ["bits", "/nowhere"],
                        ["launchers", "--bin", "/nowhere"]):
            with self.subTest(command):
                self.expect([f"tests/acceptance/{command[0]}", *command[1:]], "there is no /nowhere/")

    def test_acceptance_of_nothing(self):
        for more in (["--list"], ["--bin", BIN]):
            self.expect(["tests/acceptance/programs", "--only", "zzz", *more], "--only zzz: no command contains that")

    def test_acceptance_of_what_is_no_number(self):
        for option, value in (("--max-bytes", "much"), ("--max-bytes", ""), ("--iterations", "0")):
            self.expect(["tests/acceptance/programs", "--list", option, value], f"argument {option}: '{value}' is no ", 0)

    def test_a_fresh_machine(self):
        for arguments, text in ((["--debian"], "--debian has no value"), (["--cache"], "--cache has no value"),
                                (["--debian", ""], "--debian has no value"), (["--what"], "what is --what?"),
                                ([], "there is no COMMAND")):
            self.expect(["tests/install/fresh-machine", *arguments], text, 0)

    def test_other_compilers(self):
        for arguments, text in ((["--debian"], "--debian has no value"), (["--what"], "what is --what?"),
                                ([], "there is no COMPILER"), (["cc"], "what compiler is cc?"),
                                (["g++", "-Ofast"], "what is -Ofast?"), (["g++", "-O2", "x"], "what is x?")):
            self.expect(["tests/install/compilers", *arguments], text, 0)

    def test_nobody_reads_the_error(self):
        """Standard error is closed, or its disk is full: the status is the same, and nobody finds a core file."""
        for command in ("tutti-topo show /nowhere", "tutti-topo show --what", "tutti-topo make pcie-box >&-",
                        "tutti-sim --nodes 0 --system pcie-box", "tutti-tune check /nowhere", "tutti-doctor /nowhere",
                        "tutti-doctor --what", "tutti-doctor net --what", "tutti-doctor env more"):
            for errors in ("2>&-", "2>/dev/full"):
                done = subprocess.run(f"exec {BIN}/{command} {errors}", shell=True, stdin=subprocess.DEVNULL, check=False,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
                self.assertEqual(done.returncode, 2, f"{command} {errors}")


if __name__ == "__main__":
    sys.exit(unittest.main())
