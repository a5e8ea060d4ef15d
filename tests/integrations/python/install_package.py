"""Makes a virtual environment, and installs the package tutti into it with one pip command, as a user would.

torch and ml_dtypes are for some tests only: where they cannot be had, those skip. Exits with 77 where there is no pip, or it
reaches no index.
"""
import argparse
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
WANTED = ["numpy", "ml_dtypes", "scikit-learn", "torch==2.13.0+cpu"]


def skip(reason):
    print(reason)
    sys.exit(SKIPPED)


def pip(python, *arguments):
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def last_line(text):
    return (text.strip().splitlines() or ["nothing was said"])[-1]


def make_environment(home):
    python = home / "venv/bin/python"
    if python.exists():
        return python
    made = subprocess.run([sys.executable, "-m", "venv", home / "venv"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if made.returncode != 0:
        skip(f"needs python3-venv with pip: {last_line(made.stdout)}")
    return python


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True)
    told = parser.parse_args()
    python = make_environment(told.home)
    tools = pip(python, "scikit-build-core>=0.10", "nanobind>=2.4", WANTED[0])
    if tools.returncode != 0:
        skip(f"needs pip's index: {last_line(tools.stdout)}")
    for package in WANTED[1:]:
        if pip(python, package).returncode != 0:
            print(f"without {package}")
    # What was built the last time is there: only what has changed is built again.
    done = pip(python, "--no-build-isolation", "-C", f"build-dir={told.home / 'build'}",
               told.source / "integrations/python")
    print(done.stdout)
    if done.returncode == 0:
        subprocess.run([python, "-c", "import tutti; print('tutti', tutti.__version__)"], check=True, cwd=told.home)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
