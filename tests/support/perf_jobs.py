"""Runs the measuring programs (all_reduce_perf and its siblings) and judges what they printed.

A job is one command line. It is good when it ends with 0, in time, says that no value was wrong, and shows as many
lines as it has sizes, types, operators and roots: a table that lost lines would otherwise pass.
"""
import dataclasses
import os
import re
import resource
import shlex
import signal
import subprocess
import time

PROGRAMS = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "reduce_perf",
            "alltoall_perf", "gather_perf", "scatter_perf", "gatherv_perf", "scatterv_perf", "sendrecv_perf")
REDUCING = ("all_reduce_perf", "reduce_scatter_perf", "reduce_perf")
ROOTED = ("broadcast_perf", "reduce_perf", "gather_perf", "scatter_perf", "gatherv_perf", "scatterv_perf")
TYPE_NAMES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "f8e4m3",
              "f8e5m2", "bool", "int16", "uint16")
OPERATOR_NAMES = ("sum", "prod", "max", "min", "avg", "mulsum", "band", "bor", "bxor")
FLOATS = ("half", "float", "double", "bfloat16", "f8e4m3", "f8e5m2")


def is_defined(operator, type_name):
    """Whether the library has the operator for the type."""
    return operator not in (("avg", "mulsum") if type_name == "bool" else
                            ("band", "bor", "bxor") if type_name in FLOATS else ())


TYPES_AND_OPERATORS = tuple((each, operator) for each in TYPE_NAMES for operator in OPERATOR_NAMES
                            if is_defined(operator, each))

ALGORITHMS = {
    "all_reduce_perf": ("ring", "tree", "oneshot", "twoshot", "halving", "hierarchical", "doubling", "twopass"),
    "all_gather_perf": ("ring", "halving", "bruck", "direct", "hierarchical"),
    "reduce_scatter_perf": ("ring", "halving", "direct", "hierarchical"),
    "broadcast_perf": ("ring", "tree", "direct", "hierarchical", "doubling"),
    "reduce_perf": ("ring", "tree", "direct", "hierarchical", "doubling"),
    "alltoall_perf": ("direct",),
    "gather_perf": ("direct",),
    "scatter_perf": ("direct",),
    "gatherv_perf": ("direct",),
    "scatterv_perf": ("direct",),
    "sendrecv_perf": ("direct",),  # what a message is called; there is no choice
}
ALL_ALGORITHMS = ("ring", "tree", "oneshot", "twoshot", "halving", "bruck", "direct", "hierarchical", "doubling", "twopass")

# How the ranks come to be, and what carries their data.
PLACES = ("shm", "tcp", "threads")

_ROW = re.compile(r"^ +\d+ +\d+ +[a-z]\w* +[a-z]+ +-?\d+ ", re.MULTILINE)


def patience():
    """What the sanitizers multiply times by."""
    return float(os.environ.get("TUTTI_TEST_PATIENCE", "1"))


def parse_size(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(float(text[:-1]) * units[text[-1]]) if text[-1] in units else int(text)


def count_sizes(low, high, factor):
    size, count = max(parse_size(low), 1), 1
    while size * factor <= parse_size(high):
        size *= factor
        count += 1
    return count


@dataclasses.dataclass(frozen=True)
class Job:
    program: str
    place: str = "shm"
    ranks: int = 4
    sizes: tuple = ("1", "64K", 4)
    options: tuple = ()
    environment: tuple = ()  # of (name, value)
    tables: int = 1  # how often all sizes are run
    timeout: float = 60
    says: str = ""  # what standard error must contain

    def arguments(self):
        low, high, factor = self.sizes
        who = ["--ranks", "1", "-t", str(self.ranks)] if self.place == "threads" else ["--ranks", str(self.ranks)]
        return who + ["-b", low, "-e", high, "-f", str(factor), *self.options]

    def settings(self):
        transport = {} if self.place == "threads" else {"TUTTI_TRANSPORT": self.place}
        return {**transport, **dict(self.environment)}

    def command(self):
        settings = [f"{name}={value}" for name, value in self.settings().items()]
        return shlex.join([*settings, self.program, *self.arguments()])

    def rows(self):
        return self.tables * count_sizes(*self.sizes)


@dataclasses.dataclass
class Outcome:
    command: str
    status: int  # None: it hung
    output: str
    errors: str
    seconds: float
    cpu_seconds: float = 0

    def explain(self, what):
        return f"{what}\n  {self.command}\n{self.output[-3000:]}{self.errors[-3000:]}"


def _environment(settings):
    # The caller's own settings, and a launcher around the test, must not reach the programs.
    foreign = ("TUTTI_", "OMPI_", "PMI_", "PMIX_", "SLURM_", "HOROVOD_", "MV2_", "PALS_", "FLUX_", "JSM_")
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "TF_CONFIG", "JOB_COMPLETION_INDEX")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign) and name not in names}
    return {**kept, **settings}


def _listen_to_signals():
    """What a shell starts in the background inherits that these are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(program, arguments, settings=None):
    """The running program, in a process group of its own; standard output and error as text pipes."""
    path = os.path.join(os.environ["TUTTI_BIN_DIR"], program)
    return subprocess.Popen([path, *arguments], env=_environment(settings or {}), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                            preexec_fn=_listen_to_signals)


def finish(process, command, timeout):
    """Waits; what is still running after `timeout` seconds is ended, with all its ranks, and has the status None."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        output, errors = process.communicate(timeout=timeout * patience())
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate()
        status = None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return Outcome(command, status, output, errors, time.monotonic() - began, spent)


def run(program, arguments, settings=None, timeout=60):
    command = shlex.join([*(f"{name}={value}" for name, value in (settings or {}).items()), program, *arguments])
    return finish(start(program, arguments, settings), command, timeout)


def run_job(job):
    return run(job.program, job.arguments(), job.settings(), job.timeout)


def fault_of(job, outcome):
    """Why the job's outcome is not good; None when it is."""
    if outcome.status is None:
        return outcome.explain(f"hangs: no end after {job.timeout * patience():.0f} s")
    if outcome.status != 0:
        return outcome.explain(f"ends with {outcome.status}")
    if not re.search(r"^# Out of bounds values : 0 OK$", outcome.output, re.MULTILINE):
        return outcome.explain("does not say that all values were right")
    rows = len(_ROW.findall(outcome.output))
    if rows != job.rows():
        return outcome.explain(f"shows {rows} lines instead of {job.rows()}")
    if job.says not in outcome.errors:
        return outcome.explain(f"does not say '{job.says}'")
    if "was not used" in outcome.errors:
        return outcome.explain("ran another algorithm than it was told")
    return None
