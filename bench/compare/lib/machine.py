"""The machine that is measured: its processors, and how much of it others take."""
import os
import platform
import resource
from pathlib import Path


def cpus():
    """The processors that this process may use, those of cores of their own first."""
    first, further, seen = [], [], set()
    for cpu in sorted(os.sched_getaffinity(0)):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = path.read_text(encoding="ascii").strip() if path.is_file() else str(cpu)
        (further if core in seen else first).append(cpu)
        seen.add(core)
    return first + further


def _groups_sessions():
    """Whether the system shares the processors among sessions first, where no other groups are told to have them."""
    try:
        return Path("/proc/sys/kernel/sched_autogroup_enabled").read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


def description():
    names = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
             if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return (f"{names[0] if names else platform.machine()}, {len(cpus())} processors, {memory} GiB, "
            f"{platform.system()} {platform.release()}{', sched_autogroup_enabled' if _groups_sessions() else ''}")


def may_be_real_time():
    """Whether SCHED_RR is allowed; tried on this process, which gets its class back."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        os.sched_setscheduler(0, *before)
        return True
    except PermissionError:
        return False


def _busy():
    """Seconds of all processors since the start that were not idle."""
    with open("/proc/stat", encoding="ascii") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return (sum(times) - times[3] - times[4]) / os.sysconf("SC_CLK_TCK")


def _used(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


class Others:
    """How much of the machine processes other than this one and its children take, from now on."""

    def __init__(self):
        self.start = self._now()

    @staticmethod
    def _now():
        return os.times().elapsed, _busy(), _used(resource.RUSAGE_SELF), _used(resource.RUSAGE_CHILDREN)

    def share(self, told=0.0):
        """Of all processors, from 0 to 1. `told` are the seconds that children say they had, of whom some may not be accounted for."""
        elapsed, busy, own, children = (now - then for now, then in zip(self._now(), self.start))
        return min(1.0, max(0.0, busy - own - max(children, told)) / max(elapsed, 1e-6) / (os.cpu_count() or 1))
