"""Shared memory on a machine whose /dev/shm has 64 KiB, as in a container, or is not there at all.

Needs a mount namespace; where that is not allowed the exit status is 77 and the last line says why.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import perf_jobs

# In a namespace of their own; $1 is an empty folder, the command follows.
TINY = "mount -t tmpfs -o size=64k none /dev/shm"
ABSENT = """
mount -t tmpfs none "$1"
for node in null zero random urandom; do touch "$1/$node"; mount --bind /dev/$node "$1/$node"; done
mount --rbind "$1" /dev
! test -e /dev/shm
"""


def inside(script, folder, *command):
    """The words that run a command where `script` has changed what is mounted."""
    namespace = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    return [*namespace, "sh", "-euc", f'{script}\nshift; exec "$@"', "sh", folder, *command]


def why_not(unshare, script, folder):
    """Why the script cannot be run here; None when it can."""
    if unshare is None:
        return "unshare is not installed"
    done = subprocess.run([unshare, *inside(script, folder, "true")], capture_output=True, text=True)
    return None if done.returncode == 0 else f"mount namespaces are not allowed here: {done.stderr.strip()}"


def main():
    unshare, faults = shutil.which("unshare"), 0
    for name, script in (("64 KiB", TINY), ("absent", ABSENT)):
        with tempfile.TemporaryDirectory() as folder:
            reason = why_not(unshare, script, folder)
            if reason:
                print(f"skipped: {reason}")
                return 77
            for options in (("-n", "2"), ("-n", "2", "-R", "2")):
                job = perf_jobs.Job("all_reduce_perf", "shm", 4, ("64K", "4M", 8), options)
                program = os.path.join(os.environ["TUTTI_BIN_DIR"], job.program)
                words = inside(script, folder, program, *job.arguments())
                fault = perf_jobs.fault_of(job, perf_jobs.run(unshare, words, job.settings()))
                print(f"/dev/shm {name}, {job.command()}: {fault or 'ok'}", flush=True)
                faults += fault is not None
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
