"""Runs a file of tests with the Python of the environment that make_environment.py has made.

Exits with 77, and the reason, where the package tutti or a module that the tests need is not in it.
"""
import argparse
import os
import sys
from pathlib import Path

SKIPPED = 77


def is_installed(home, module):
    places = list((home / "venv/lib").glob("python*/site-packages"))
    return any(list(place.glob(f"{module}/__init__.py")) + list(place.glob(f"{module}.py")) for place in places)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--needs", action="append", default=[])
    parser.add_argument("test", type=Path)
    told, rest = parser.parse_known_args()
    python = told.home / "venv/bin/python"
    missing = [module for module in ["tutti", *told.needs] if not is_installed(told.home, module)]
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
