"""Where the programs of each system are: found, installed or compiled."""
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent.parent
FLAGS = ["-std=c++20", "-O3", "-march=native", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]


# $0: a namespace's path without its number. Launchers number the ranks from 0.
ENTER_BY_RANK = 'exec nsenter --net="$0$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} + 1))" "$@"'


class Trouble(Exception):
    """Said in one line, without a traceback."""


class Missing(Exception):
    """A system that cannot be measured here, and why."""


@dataclass(frozen=True)
class Program:
    driver: Path
    version: str
    launcher: tuple = ()  # of MPI; without one, each rank is started by itself

    def commands(self, ranks, arguments, network=None):
        """What starts the job: one command, or one for each rank. `network`: rank r runs on its host r + 1, a launcher in its hub."""
        words = [str(self.driver), *arguments]
        if not self.launcher:
            return [[*(network.entering(rank + 1) if network else ()), *words, "--rank", str(rank), "--ranks", str(ranks)]
                    for rank in range(ranks)]
        if not network:
            return [[*self.launcher, "-np", str(ranks), *words]]
        return [[*network.entering("hub"), *self.launcher, "-np", str(ranks), "sh", "-c", ENTER_BY_RANK, network.path(""), *words]]


def _answer(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)
    except OSError:
        return ""
    return done.stdout + done.stderr if done.returncode == 0 else ""


def shell(*lines):
    """Runs lines of the project's own set-up (tools/lib/setup.sh)."""
    script = "\n".join(["set -euo pipefail", ". tools/lib/setup.sh", *lines])
    return subprocess.run(["bash", "-c", script], cwd=ROOT, check=False, stdin=subprocess.DEVNULL).returncode == 0


def build_tutti():
    """The folder of what CMake builds."""
    if not shell("setup build", "[ -f build/release/build.ninja ] || configure release",
                 "build release compare_tutti compare_limits compare_plot"):
        raise Trouble("tutti could not be built; what was printed stands above")
    return ROOT / "build/release/bin"


def install(systems):
    """As far as it can be done here; what is missing after that is said of each system."""
    wanted = [system for system in systems if system in ("openmpi", "mpich", "gloo")]
    if wanted:
        shell("setup_peers " + " ".join(wanted))


def compiled(name, compiler, source, folder, *libraries):
    """The driver, compiled again where a source is newer, or where it was made of another build of the peer."""
    driver, made = folder / name, folder / f"{name}.command"
    sources = [HERE / source, *HERE.glob("*.h")]
    command = [*compiler, *FLAGS, str(HERE / source), "-o", str(driver), *libraries]
    is_new = driver.is_file() and driver.stat().st_mtime > max(path.stat().st_mtime for path in sources)
    if is_new and made.is_file() and made.read_text() == shlex.join(command):
        return driver
    folder.mkdir(parents=True, exist_ok=True)
    made.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Missing(f"no compiler: {error}") from error
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise Missing(f"its driver does not compile: {first}")
    made.write_text(shlex.join(command))
    return driver


def _mpi(system, prefix, folder):
    marker, own = {"openmpi": ("Open MPI", ".openmpi"), "mpich": ("HYDRA", ".mpich")}[system]
    pairs = [(f"{prefix}/bin/mpicxx", f"{prefix}/bin/mpirun")] if prefix else \
        [(f"mpicxx{suffix}", f"mpirun{suffix}") for suffix in (own, "")]
    for compiler, launcher in pairs:
        version = _answer(launcher, "--version")
        if marker not in version or not shutil.which(compiler):
            continue
        driver = compiled(f"mpi_driver.{system}", [compiler], "mpi_driver.cc", folder)
        if system == "mpich":
            number = re.search(r"Version: +(\S+)", version)
            return Program(driver, f"MPICH {number[1] if number else ''}".strip(), (launcher, "-launcher", "fork", "-iface", "lo"))
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        number = re.search(r"Open MPI\) (\S+)", version)
        return Program(driver, f"Open MPI {number[1] if number else ''}".strip(),
                       (launcher, *as_root, "--oversubscribe", "--bind-to", "none", "-q"))
    raise Missing(f"neither {' nor '.join(compiler for compiler, _ in pairs)} with a launcher of its own is here")


def _library(name, prefix, folder):
    flags = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"] if prefix else []
    return compiled(f"{name}_driver", ["g++", *flags[:1]], f"{name}_driver.cc", folder, *flags[1:], f"-l{name}", "-lpthread")


def _gloo(prefix, folder):
    driver = _library("gloo", prefix, folder)
    if prefix:
        return Program(driver, f"Gloo, {prefix}")
    return Program(driver, f"Gloo {_answer('dpkg-query', '-W', '-f', '${Version}', 'libgloo-dev')}".strip())


def _ucc(prefix, folder):
    driver = _library("ucc", prefix, folder)
    number = re.search(r"version=(\S+).*revision (\w+)", _answer(f"{prefix}/bin/ucc_info" if prefix else "ucc_info", "-v"))
    return Program(driver, f"UCC {number[1]} ({number[2]})" if number else "UCC")


def find(system, prefix, folder, bin_folder):
    """The program of a system; raises Missing."""
    if system == "tutti":
        driver = bin_folder / "compare_tutti"
        if not driver.is_file():
            raise Trouble(f"there is no {driver}: build compare_tutti, or leave --bin out")
        return Program(driver, f"tutti {_answer('git', '-C', str(ROOT), 'describe', '--always', '--dirty')}".strip())
    if system in ("openmpi", "mpich"):
        return _mpi(system, prefix, folder)
    return _gloo(prefix, folder) if system == "gloo" else _ucc(prefix, folder)
