"""What tutti-sim says, of good and of bad arguments."""
import os
import re
import subprocess
import sys
import unittest

BIN = os.environ["TUTTI_BIN_DIR"]


def run(*arguments):
    return subprocess.run([os.path.join(BIN, "tutti-sim"), *arguments], capture_output=True, text=True, check=False,
                          timeout=300)


class Tool(unittest.TestCase):
    def answer(self, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def refusal(self, text, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def test_a_table_with_the_best_first(self):
        text = self.answer("--system", "hgx-h100", "--nodes", "4", "--size", "16M")
        rows = re.findall(r"(?m)^ +16M  (\S+) +([\d.]+) ", text)
        self.assertIn("ring", [name for name, _ in rows])
        times = [float(time) for _, time in rows]
        self.assertEqual(times, sorted(times))
        self.assertIn(f"Best for 16M: {rows[0][0]}, {rows[0][1]} us;", text)
        self.assertIn("p: before the run, the schedules of all ranks were proved", text)

    def test_it_says_what_it_left_out(self):
        text = self.answer("--nodes", "32", "--size", "256M", "--system", "ethernet")
        self.assertNotIn("p: ", text)
        self.assertIn("h: one host was run", text)
        self.assertIn("x: a part of the message's rounds was run", text)
        self.assertIn("Left out: ", self.answer("--nodes", "1"))

    def test_65536_ranks(self):
        text = self.answer("--nodes", "8192", "--size", "1G", "--algo", "hierarchical")
        self.assertIn("h: one host was run", text)
        self.assertIn("The library's communicators have up to 16384 ranks", text)

    def test_the_same_twice(self):
        self.assertEqual(self.answer("--nodes", "2"), self.answer("--nodes", "2"))

    def test_a_sweep(self):
        text = self.answer("--algo", "ring", "--sweep", "--size", "64K")
        self.assertEqual(re.findall(r"(?m)^ +(\w+)  ring", text), ["1K", "8K", "64K"])

    def test_bad_arguments(self):
        self.refusal("'cray' is no system; choose one of: hgx-h100", "--system", "cray")
        self.refusal("'sum' is no operation; choose one of: all_reduce", "--op", "sum")
        self.refusal("'best' is no algorithm; choose one of: ring", "--algo", "best")
        self.refusal("broadcast has no algorithm bruck; choose one of: ", "--op", "broadcast", "--algo", "bruck")
        self.refusal("is not one of 8 ranks", "--op", "broadcast", "--root", "8")
        for size in ("much", "0", "-1", "1T", "1e30"):
            self.refusal(f"invalid size '{size}'", f"--size={size}")
        self.refusal("hosts of 8 ranks are no cluster", "--nodes", "0")
        self.refusal("one rank alone has nothing to send", "--ranks-per-node", "1", "--algo", "ring")
        self.refusal("--what", "--what")


if __name__ == "__main__":
    sys.exit(unittest.main())
