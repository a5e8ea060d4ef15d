"""Shared memory on a machine whose /dev/shm has 64 KiB, as in a container, or is not there at all; and few descriptors,
and short files.

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


def limited(limit, program, *options):
    """What a program does under a limit of the shell's: its status and all it says."""
    words = ["sh", "-c", f'ulimit {limit}; exec "$0" "$@"', os.path.join(os.environ["TUTTI_BIN_DIR"], program), *options]
    # Nobody waits for the join's deadline: that would be a hang here.
    late = dict(os.environ, TUTTI_JOIN_TIMEOUT_MS=str(3_600_000))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60 * perf_jobs.patience(), env=late)
    return done.returncode, done.stdout + done.stderr


def fault_of_limits():
    """Where files may not be long, memory goes over tcp; where descriptors are few, the text says so."""
    for blocks in (40, 4):  # of 512 bytes: no room for a link, nor even for the page that a rank sleeps on
        for ranks in (("--ranks", "2"), ("-t", "2")):
            status, said = limited(f"-f {blocks}", "all_reduce_perf", *ranks, "-b", "8", "-e", "64K")
            if status != 0 or ("--ranks" in ranks and "ulimit -f" not in said):
                return f"short files ({blocks} blocks), {' '.join(ranks)}: status {status}: {said}"
    if perf_jobs.patience() > 1:
        print("no files, few descriptors: left to the builds without sanitizers")
        # ThreadSanitizer writes a file before the program begins. UBSan asks a pipe whether memory can be read: with no
        # descriptor left, it takes good objects for bad.
        return None
    status, said = limited("-f 0", "all_reduce_perf", "--ranks", "2", "-b", "8", "-e", "8")
    if status != 1 or "File too large: ulimit -f allows 0 bytes" not in said or "unique id" in said:
        return f"no files: status {status}: {said}"
    for few in (5, 8, 24, 64):  # whatever happens to be the first that there is none for
        status, said = limited(f"-n {few}", "all_reduce_perf", "-t", "8", "-b", "8", "-e", "8")
        last = said.strip().splitlines()[-1]
        if status == 0 or "ulimit -n" not in last:
            return f"{few} descriptors: status {status}: {said}"
    return None


def main():
    fault = fault_of_limits()
    print(f"limits: {fault or 'ok'}", flush=True)
    if fault:
        return 1
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
