"""Runs a file of tests with the Python into which the package was installed (install_package.py)."""
import argparse
import os
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("test", type=Path)
    told, rest = parser.parse_known_args()
    python = told.home / "venv/bin/python"
    if not (told.home / "venv/lib").is_dir() or not list((told.home / "venv/lib").glob("python*/site-packages/tutti/_core*")):
        print("the package tutti could not be installed: see integrations.python_installed")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    os.execv(python, [str(python), str(told.test), *rest])


if __name__ == "__main__":
    sys.exit(main())
