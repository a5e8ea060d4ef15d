"""Ranks that die, stray, stay away or are interrupted."""
import subprocess
import sys
import unittest

import jobs


class Failures(jobs.JobTest):
    def test_a_killed_rank_is_named_and_the_others_shrink(self):
        job = jobs.run_ranks(3, "failing.py", "killed")
        self.assertEqual((job.returncode, job.stdout.count("survived")), (128 + 9, 2), job.stdout + job.stderr)
        self.assertIn("tutti.run: rank 1 of 3", job.stderr)
        self.assertIn("was ended by SIGKILL; ending the other 2", job.stderr)

    def test_calls_that_do_not_match(self):
        self.ranks_do(2, "failing.py", "mismatch")

    def test_a_script_that_ends_with_work_under_way(self):
        self.ranks_do(2, "failing.py", "deserted")

    def test_a_deadline(self):
        self.ranks_do(2, "failing.py", "late")

    def test_an_interrupt_ends_a_wait(self):
        self.ranks_do(2, "failing.py", "interrupted")

    def test_a_handler_without_exception_does_not(self):
        self.ranks_do(2, "failing.py", "handled")


class Alone(unittest.TestCase):
    """One process, with variables of its own."""

    def outcome(self, code, **variables):
        return subprocess.run([sys.executable, "-c", code], env=jobs.clean_environment(**variables), capture_output=True, text=True,
                              timeout=jobs.SECONDS, check=False)

    def test_no_launcher(self):
        done = self.outcome("import tutti; tutti.init()")
        self.assertIn("tutti._errors.InvalidUsage: no launcher has said who this process is", done.stderr)

    def test_an_interrupt_ends_joining(self):
        code = ("import os, signal, threading, tutti\n"
                "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                "try:\n tutti.init()\n"
                "except KeyboardInterrupt:\n print('interrupted')\n")
        done = self.outcome(code, TUTTI_RANK="0", TUTTI_SIZE="2", TUTTI_ROOT="127.0.0.1:29541")
        self.assertEqual(done.stdout, "interrupted\n", done.stderr)

    def test_ranks_that_do_not_come_are_named(self):
        done = self.outcome("import tutti; tutti.init(join_timeout=3)", TUTTI_RANK="0", TUTTI_SIZE="2", TUTTI_LOCAL_RANK="0",
                            TUTTI_LOCAL_SIZE="2", TUTTI_JOB="python-alone")
        self.assertIn("tutti._errors.Timeout: 1 of 2 ranks came", done.stderr)
        self.assertIn("missing: rank 1", done.stderr)


if __name__ == "__main__":
    jobs.main()
