"""The examples' command lines: --help is answered, what they do not take is refused before any rank is started."""
import os
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = {"01_all_reduce": "[--ranks N]", "02_digits": "[--ranks N] [--epochs N] [--steps] [--data FILE]",
            "03_survivors": "[--ranks N]"}


class Examples(unittest.TestCase):
    @staticmethod
    def environment():
        return {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}

    def run_one(self, program, *arguments, stdout=subprocess.PIPE):
        path = os.path.join(os.environ["TUTTI_BIN_DIR"], program)
        return subprocess.run([path, *arguments], env=self.environment(), stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, check=False,
                              timeout=60 * float(os.environ.get("TUTTI_TEST_PATIENCE", "1")))

    def test_help(self):
        for program, usage in EXAMPLES.items():
            for arguments in (["--help"], ["-h"], ["--ranks", "2", "--help"]):
                with self.subTest(program=program, arguments=arguments):
                    done = self.run_one(program, *arguments)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertRegex(done.stdout, r"^usage: \S+" + program + r" ")
                    self.assertTrue(done.stdout.endswith(f" {usage}\n"), done.stdout)

    def test_what_they_do_not_take(self):
        for program in EXAMPLES:
            for arguments in (["--bogus"], ["extra"], ["--ranks", "2", "--bogus"], ["--ranks", "two"], ["--ranks"],
                              ["--ranks", "2", "-b", "8"]):
                with self.subTest(program=program, arguments=arguments):
                    done = self.run_one(program, *arguments)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for value in ("0", "-1", "many"):
            done = self.run_one("02_digits", "--ranks", "2", "--epochs", value)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f": --epochs takes a whole number from 1 on, not '{value}'; usage: ", done.stderr)
        for name in ("--epochs", "--data"):
            self.assertIn(f": {name} needs a value; usage: ", self.run_one("02_digits", name).stderr)

    def test_output_that_is_lost_is_a_failure(self):
        for program, *arguments in (("01_all_reduce",), ("02_digits", "--epochs", "1")):
            with self.subTest(program=program), open("/dev/full", "wb") as full:
                done = self.run_one(program, *arguments, "--ranks", "1", stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r": process \d+: cannot write to standard output.*\n$")

    def test_survivors_are_named_at_once(self):
        process = subprocess.Popen([os.path.join(os.environ["TUTTI_BIN_DIR"], "03_survivors"), "--ranks", "2"],
                                   env=self.environment(), stdout=subprocess.PIPE)
        try:
            first = os.read(process.stdout.fileno(), 65536)
            self.assertRegex(first, rb"^process \d+, step 0: 2 ranks\n")
            self.assertNotIn(b"step 59:", first)  # all at once, when it is too late
        finally:
            process.terminate()
            process.communicate()

    def test_data_that_is_no_digits(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("0," * 64 + "7\n1,2,3\n")
            file.flush()
            done = self.run_one("02_digits", "--ranks", "2", "--data", file.name)
        self.assertEqual(done.returncode, 1)
        lines = sorted(done.stderr.splitlines())
        self.assertEqual(len(lines), 2, lines)
        for rank, line in enumerate(lines):
            self.assertTrue(line.endswith(f": rank {rank}: {file.name}, line 2: not 64 pixels and a digit: 1,2,3"), line)

    def test_what_they_take(self):
        for program, *arguments in (("01_all_reduce",), ("02_digits", "--epochs", "1")):
            done = self.run_one(program, *arguments, "--ranks", "2")
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    sys.exit(unittest.main())
