"""The matrix of runs that the measuring programs must pass: a generator of jobs for each dimension.

Each comes in two forms. The short one is for every run of the tests and takes the same ways through the code with
fewer and smaller messages; the long one (tests/acceptance/programs) leaves nothing out.
"""
import dataclasses
from random import Random

from perf_jobs import ALGORITHMS, PLACES, PROGRAMS, REDUCING, ROOTED, TYPE_NAMES, TYPES_AND_OPERATORS, Job

QUICK = ("-n", "2", "-w", "1")


@dataclasses.dataclass(frozen=True)
class Form:
    long: bool
    loops: tuple
    timeout: float

    def pick(self, short, full):
        return full if self.long else short


SHORT = Form(False, QUICK, 60)
LONG = Form(True, (), 600)


def _tables(program):
    return len(TYPES_AND_OPERATORS) if program in REDUCING else len(TYPE_NAMES)


def _grouping(algorithm):
    return (("TUTTI_GROUP_SIZE", "2"),) if algorithm == "hierarchical" else ()


def places(form):
    """Every program, over everything that carries data."""
    for place in PLACES:
        for program in PROGRAMS:
            yield Job(program, place, sizes=("1", form.pick("1M", "64M"), 4), options=form.loops, timeout=form.timeout)


def algorithms(form):
    """Every algorithm of every program: even, odd and larger numbers of ranks."""
    few = (("shm", 4), ("tcp", 3), ("threads", 7))
    every = [(place, ranks) for place in PLACES for ranks in (2, 3, 4, 7, 8)]
    for place, ranks in form.pick(few, every):
        for program in PROGRAMS:
            for algorithm in ALGORITHMS[program]:
                sizes = ("1", "64M", 4) if form.long and ranks == 4 else ("1", form.pick("64K", "4M"), 16)
                yield Job(program, place, ranks, sizes, (*form.pick(QUICK, ()), "--algo", algorithm),
                          _grouping(algorithm), timeout=form.timeout)


def _proof(program, algorithm, ranks):
    # Messages between two ranks are a step at each end: there is nothing to prove of them.
    if program == "sendrecv_perf":
        return ""
    names = {"alltoall": "all-to-all", "gatherv": "gather-v", "scatterv": "scatter-v"}
    collective = program.removesuffix("_perf")
    return f"proved {names.get(collective, collective.replace('_', '-'))} by {algorithm} on {ranks} ranks"


def proofs(form):
    """Every algorithm, its schedule proved by the library before it runs."""
    for ranks in form.pick((5,), (2, 3, 5, 8, 12)):
        for program in PROGRAMS:
            for algorithm in ALGORITHMS[program]:
                settings = (*_grouping(algorithm), ("TUTTI_VERIFY", "1"), ("TUTTI_DEBUG", "info"))
                yield Job(program, "threads", ranks, ("4K", "4K", 2), (*QUICK, "--algo", algorithm), settings,
                          timeout=form.timeout, says=_proof(program, algorithm, ranks))


def types(form):
    """Every type with every operator."""
    for place in form.pick(("threads",), PLACES):
        for program in PROGRAMS:
            chosen = ALGORITHMS[program] if form.long and program in REDUCING else (None,)
            for algorithm in chosen:
                options = ("-d", "all", "-o", "all", *QUICK, *(("--algo", algorithm) if algorithm else ()))
                yield Job(program, place, 4, form.pick(("8", "2K", 16), ("1", "64K", 4)), options,
                          _grouping(algorithm), _tables(program), form.timeout)


def ranks(form):
    """One rank, numbers that are no power of two, and more ranks than cores."""
    for place in form.pick(("shm",), PLACES):
        for number in (1, 3, 7, 16):
            large = number > 4
            for program in PROGRAMS:
                sizes = ("1", form.pick("16K" if large else "256K", "64M"), 16 if large else 4)
                yield Job(program, place, number, sizes, form.loops, timeout=form.timeout)
    if form.long:
        return
    for program in ("all_reduce_perf", "alltoall_perf"):
        yield Job(program, "tcp", 16, ("1", "16K", 16), QUICK)
        yield Job(program, "threads", 16, ("1", "16K", 16), QUICK)


def _option_sets():
    """Options that change how operations are issued, with how often they run all sizes."""
    yield "streams", ("-y", "0"), 1
    for blocking in ("1", "2", "3"):
        yield "streams, waiting", ("-y", "0", "-z", blocking), 1
    yield "registered", ("-R", "1"), 1
    yield "shareable", ("-R", "2"), 1
    yield "shareable on streams", ("-R", "2", "-y", "0", "-m", "3"), 1
    yield "aggregated", ("-m", "5"), 1
    yield "unchecked", ("-c", "0"), 1
    yield "checked thrice", ("-c", "3"), 1
    yield "unaligned", ("-u", "1"), 1
    yield "unaligned bytes", ("-u", "3", "-d", "int8"), 1
    yield "cycles", ("-N", "2"), 2
    yield "iterations", ("-I", "1", "-n", "4", "-K", "1"), 1
    yield "time of rank 0", ("-a", "0", "-C", "1", "-S", "1"), 1


def options(form):
    """Every option that changes how operations are issued."""
    for place in form.pick(("shm",), PLACES):
        for program in form.pick(("all_reduce_perf", "alltoall_perf"), PROGRAMS):
            sizes = ("1", form.pick("64K", "4M"), 16)
            for _, more, tables in _option_sets():
                yield Job(program, place, 4, sizes, (*QUICK, *more), (), tables, form.timeout)
            for channels in form.pick(("2",), ("1", "2", "4")):
                yield Job(program, place, 4, sizes, QUICK, (("TUTTI_CHANNELS", channels),), 1, form.timeout)


def roots(form):
    """Every rank as the root."""
    for place in form.pick(("shm",), PLACES):
        for program in ROOTED:
            for number in form.pick((4,), (4, 7)):
                for algorithm in ALGORITHMS[program]:
                    yield Job(program, place, number, ("4", form.pick("16K", "1M"), 16),
                              (*QUICK, "-r", "all", "--algo", algorithm), _grouping(algorithm), number, form.timeout)


def shapes(form):
    """Ranks as processes, threads and several ranks a thread, in every mixture."""
    mixtures = (("-t", "2"), ("-g", "2"), ("-t", "2", "-g", "2"), ("-t", "2", "-p", "1"), ("-g", "2", "-y", "0"),
                ("-t", "2", "-g", "2", "-m", "3"))
    for place in form.pick(("shm",), ("shm", "tcp", "shm,tcp")):
        for program in form.pick(("all_reduce_perf", "sendrecv_perf", "alltoall_perf"), PROGRAMS):
            for mixture in mixtures:
                yield Job(program, place, 2, ("1", form.pick("64K", "4M"), 16), (*QUICK, *mixture), (), 1, form.timeout)
    for program in PROGRAMS:
        for mixture in (("-g", "3"), ("-p", "1"), ("-g", "2", "-y", "0")):
            yield Job(program, "threads", 2, ("1", form.pick("16K", "4M"), 16), (*QUICK, *mixture), (), 1, form.timeout)


# Ranks as processes, times threads, times ranks a thread.
_CROWDS = ((2, 1, 1), (3, 1, 1), (5, 1, 1), (8, 1, 1), (2, 2, 1), (3, 1, 2), (2, 2, 2))


def _mixture(random, form):
    program, place = random.choice(PROGRAMS), random.choice(PLACES)
    number, threads, driven = random.choice(_CROWDS)
    total = number * threads * driven
    algorithm = random.choice(ALGORITHMS[program])
    type_name, operator = random.choice(TYPES_AND_OPERATORS)
    options = [*QUICK, "-g", str(driven), "--algo", algorithm, "-d", type_name]
    options += ("-o", operator) if program in REDUCING else ()
    options += ("-r", str(random.randrange(total))) if program in ROOTED else ()
    options += ("-t", str(number * threads if place == "threads" else threads))
    for option, values in (("-y", "01"), ("-R", "012"), ("-m", "114"), ("-u", "003"), ("-z", "0123"), ("-p", "01")):
        options += (option, random.choice(values))
    settings = (("TUTTI_GROUP_SIZE", str(random.randint(1, 4))), ("TUTTI_CHANNELS", str(random.randint(1, 3))))
    largest = random.choice((1000, 70000, form.pick(300000, 5000000)))
    sizes = (str(random.randint(1, 64)), str(largest), random.randint(2, 9))
    return Job(program, place, number, sizes, tuple(options), settings, 1, form.timeout)


def mixtures(form):
    """Everything at once, drawn by chance: always the same draw."""
    random = Random(20)
    for _ in range(form.pick(50, 1500)):
        yield _mixture(random, form)


DIMENSIONS = {each.__name__: each
              for each in (places, algorithms, proofs, types, ranks, options, roots, shapes, mixtures)}
