"""python -m tutti.run."""
import contextlib
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import jobs


class Run(unittest.TestCase):
    def test_ranks_know_who_they_are(self):
        job = jobs.run_ranks(3, "one.py", "show")
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(sorted(job.stdout.splitlines()), [f"{r} 3 {r} {r} 3 {r} 127.0.0.1 port" for r in range(3)])

    def test_prefix(self):
        job = jobs.run_ranks(2, "one.py", "show", options=["--prefix"])
        self.assertEqual(sorted(line[:4] for line in job.stdout.splitlines()), ["[0] ", "[1] "])

    def test_prefix_that_nobody_reads(self):
        """The ranks go on, however much they print."""
        command = [sys.executable, "-m", "tutti.run", "--prefix", "-n", "1", "--no-python", sys.executable, "-c",
                   "for _ in range(20_000): print('x' * 30)"]
        with subprocess.Popen(command, env=jobs.clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as job:
            job.stdout.readline()
            job.stdout.close()
            try:
                self.assertEqual(job.wait(jobs.SECONDS), 0)
            finally:
                job.kill()

    def test_one_that_fails_ends_the_job(self):
        job = jobs.run_ranks(3, "one.py", "three")
        self.assertEqual(job.returncode, 3)
        self.assertRegex(job.stderr, r"tutti.run: rank 1 of 3 \(pid \d+\) ended with status 3; ending the other 2 that still run")

    def test_an_exception_is_shown_and_told(self):
        job = jobs.run_ranks(2, "failing.py", "raising")
        self.assertEqual(job.returncode, 1)
        self.assertIn("RuntimeError: on purpose", job.stderr)

    def test_no_such_program(self):
        job = jobs.run_ranks(1, "one.py", options=["--no-python", "/nowhere/at-all"])
        self.assertEqual(job.returncode, 127)
        self.assertIn("tutti.run: cannot start /nowhere/at-all", job.stderr)

    def test_module_and_program(self):
        for options in (["-m", "this"], ["--no-python", "/bin/true"]):
            command = [sys.executable, "-m", "tutti.run", "-n", "2", *options]
            done = subprocess.run(command, env=jobs.clean_environment(), capture_output=True, timeout=jobs.SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    SHOW = """import os, sys
try:
    os.open("/dev/tty", os.O_RDWR)
    terminal = "a terminal"
except OSError:
    terminal = "none"
typed = sys.stdin.readline().strip()
# At once: the lines of ranks that write to one terminal piece by piece meet.
os.write(1, f"{os.environ['RANK']} {os.getsid(0) == os.getsid(os.getppid())} {os.getpgid(0) == os.getpid()} {terminal} {typed}\\n".encode())
"""
    THREE = [sys.executable, "-m", "tutti.run", "-n", "3", "--no-python", sys.executable, "-c", SHOW]

    def test_ranks_are_in_the_launchers_session(self):
        """Or the system may have each give way to nobody. Each leads a process group."""
        done = subprocess.run(self.THREE, env=jobs.clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=jobs.SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{rank} True True none " for rank in range(3)])

    def test_the_terminal_stops_no_rank(self):
        """It is the launcher's; rank 0 reads from it all the same."""
        child, keyboard = pty.fork()
        if child == 0:
            os.execve(sys.executable, self.THREE, jobs.clean_environment())
        os.write(keyboard, b"typed\n")
        said = b""
        with contextlib.suppress(OSError):  # nobody has it any more
            while chunk := os.read(keyboard, 4096):
                said += chunk
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, said)
        lines = said.decode().replace("\r", "").splitlines()
        self.assertEqual(sorted(line for line in lines if "True" in line),
                         ["0 True True none typed", *[f"{rank} True True none " for rank in (1, 2)]])
        os.close(keyboard)

    def test_who_is_stopped_hears_that_it_is_to_end(self):
        command = [sys.executable, "-m", "tutti.run", "-n", "2", "--no-python", "/bin/sh", "-c", "echo $$; kill -STOP $$; sleep 1000"]
        with subprocess.Popen(command, env=jobs.clean_environment(), stdout=subprocess.PIPE, text=True) as job:
            try:
                for rank in (job.stdout.readline(), job.stdout.readline()):
                    while Path(f"/proc/{rank.strip()}/stat").read_text(encoding="ascii").split()[2] != "T":
                        time.sleep(0.01)
                job.terminate()
                self.assertEqual(job.wait(jobs.SECONDS), 128 + signal.SIGTERM)
            finally:
                job.kill()

    def test_numbers_of_ranks_that_there_are_not(self):
        for ranks, why in ((0, "there is at least one"), (16385, "there are 16384 at most")):
            job = jobs.run_ranks(ranks, "one.py", "show")
            self.assertEqual(job.returncode, 2)
            self.assertIn(why, job.stderr)

    def test_no_more_are_started_when_one_has_failed_or_a_signal_has_come(self):
        with tempfile.TemporaryDirectory() as folder:
            def count():
                return len(list(Path(folder).iterdir()))
            command = [sys.executable, "-m", "tutti.run", "-n", "2000", "--no-python", "/bin/sh", "-c"]
            subprocess.run([*command, f"touch {folder}/$TUTTI_RANK; exit 7"], env=jobs.clean_environment(), check=False,
                           stderr=subprocess.DEVNULL, timeout=jobs.SECONDS)
            failing = count()
            self.assertLess(failing, 1000)
            with subprocess.Popen([*command, f"touch {folder}/more-$TUTTI_RANK; sleep 1000"], env=jobs.clean_environment()) as job:
                while count() < failing + 3:
                    time.sleep(0.01)
                job.terminate()
                self.assertEqual(job.wait(jobs.SECONDS), 143)
            self.assertLess(count(), failing + 1000)

    def test_signals_are_handed_on(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "tutti.run", "-n", "2", str(jobs.RANKS / "one.py"), "signalled", folder]
            with subprocess.Popen(command, env=jobs.clean_environment()) as job:
                self.wait_for(folder, "ready", job)
                job.send_signal(signal.SIGTERM)
                self.assertEqual(job.wait(jobs.SECONDS), 0)
            for rank in range(2):
                self.assertEqual(Path(folder, f"got{rank}").read_text(encoding="utf-8"), "SIGTERM")

    def wait_for(self, folder, beginning, job):
        deadline = time.monotonic() + jobs.SECONDS
        while len(list(Path(folder).glob(f"{beginning}*"))) < 2:
            self.assertIsNone(job.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    @unittest.skipUnless(jobs.has("torch"), "needs torch")
    def test_env_of_torch(self):
        for case in ("torch", "exported"):
            job = jobs.run_ranks(2, "one.py", case)
            self.assertEqual(job.stdout.count("sum 2.0"), 2, job.stdout + job.stderr)


if __name__ == "__main__":
    jobs.main()
