#!/usr/bin/env python3
"""Does what README.md says, word by word: every command in its order, in one shell; every file that it shows is written
where it says, and what it says will be printed must be printed.

    tests/install/readme_test.py --skip tools/demo --skip tools/check     where build/release is built already
    tests/install/readme_test.py --shell 'chroot DIRECTORY bash -c "cd ~/tutti; exec bash"'     all of it, elsewhere
    tests/install/readme_test.py --list                                   what would be done

Here it runs in the project's folder, with a home of its own that is removed at the end, and, as a fresh machine has no
make, with one first in PATH that only fails. Elsewhere the shell finds what is there: only bash is needed, as the
commands of README.md install the rest.
"""
import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lib"))
import markdown  # noqa: E402  pylint: disable=wrong-import-position

# Commands that say by their status that something is wrong with what they were shown, which here is the point.
STATUS = {"tools/tutti-doctor": 1}
# The newcomer has set nothing, and what somebody has set for this test's sake must not help.
FOREIGN = ("TUTTI_", "CMAKE_", "LD_LIBRARY", "PKG_CONFIG", "RANK", "WORLD_SIZE")


def fail(text):
    sys.exit(f"README.md: {text}")


class Step:
    """A block of README.md: a file to write, commands to run, or what these print."""

    def __init__(self, block):
        self.block = block
        self.is_file = markdown.is_code(block) or markdown.is_cmake(block)
        names = [text for _, text in markdown.codes(block.before)]
        self.path = names[-1] if self.is_file and names else None
        if self.is_file and (self.path is None or "/" not in self.path):
            fail(f"line {block.line}: nothing before this file says where to put it")

    @property
    def is_output(self):
        """The sentence before it ends in a verb that says so."""
        return not self.is_file and bool(re.search(r"\b(prints|says [^.]*)\W*$", " ".join(self.block.before.split())))


def commands_of(block):
    """A block's commands: lines, but for those that belong together."""
    command = ""
    for line in block.lines:
        command += line + "\n"
        if is_whole(command):
            if command.strip():
                yield command.strip()
            command = ""
    if command.strip():
        fail(f"line {block.line}: a command without an end: {command}")


def is_whole(command):
    return subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False).returncode == 0


class Shell:
    """One bash that lives from the first command to the last, as the newcomer's does."""

    MARK = "--- the status is "

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)

    def run(self, command):
        """Its output and its status."""
        print(f"$ {command}", flush=True)
        self.process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s%d\\n' '{self.MARK}' $?\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(self.MARK):
                return "".join(lines)[:-1], int(line[len(self.MARK):])
            lines.append(line)
            print(line, end="", flush=True)
        fail(f"the shell ended during: {command}")

    def end(self):
        """Lets the shell go, which may have to clean up behind itself, then ends whatever a command left behind."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            print("the shell does not end", flush=True)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def is_skipped(command, skipped):
    words = shlex.split(command, comments=True)
    return any(words[:len(shlex.split(one))] == shlex.split(one) for one in skipped)


def squeezed(text):
    return " ".join(text.split())


class Reading:
    def __init__(self, setting, shell):
        self.setting, self.shell = setting, shell
        self.printed = ""  # by the last block of commands
        self.ran = self.compared = self.written = 0

    def write(self, step):
        folder = step.path.rpartition("/")[0]
        status = self.shell.run(f"mkdir -p {folder} && cat >{step.path} <<'--- end'\n{step.block.text}\n--- end")[1]
        if status != 0:
            fail(f"line {step.block.line}: {step.path} could not be written")
        self.written += 1

    def compare(self, step):
        if squeezed(step.block.text) not in squeezed(self.printed):
            fail(f"line {step.block.line}: this was not printed by the commands before:\n{step.block.text}")
        self.compared += 1

    def run(self, step):
        self.printed = ""
        for command in commands_of(step.block):
            if is_skipped(command, self.setting.skip):
                print(f"(left out: {command})", flush=True)
                continue
            output, status = self.shell.run(command)
            self.printed += output
            if status != STATUS.get(command.split()[0], 0):
                fail(f"line {step.block.line}: this ended with {status}: {command}")
            self.ran += 1

    def do(self, step):
        (self.write if step.is_file else self.compare if step.is_output else self.run)(step)


def show(steps):
    for step in steps:
        what = f"write {step.path}" if step.is_file else "expect" if step.is_output else "run"
        print(f"# line {step.block.line}: {what}\n{step.block.text}\n")


def like_fresh(home, tools):
    """The newcomer's environment on this machine: nothing set, and a make that is as good as none."""
    for name in ("make", "gmake"):
        path = Path(tools) / name
        path.write_text("#!/bin/sh\necho 'a fresh machine has no make' >&2\nexit 127\n", encoding="utf-8")
        path.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "HOME": str(home), "PATH": f"{tools}:{kept['PATH']}"}


def read_aloud(setting, steps, shell):
    reading = Reading(setting, shell)
    try:
        for step in steps:
            reading.do(step)
    finally:
        shell.end()
    if not (reading.ran and reading.written and reading.compared):
        fail("there should be commands, files and something to compare")
    print(f"README.md: {reading.ran} commands ran, {reading.written} files were written, "
          f"{reading.compared} outputs were as it says")


def main():
    parser = argparse.ArgumentParser(description="Does what README.md says.")
    parser.add_argument("--skip", action="append", default=[], metavar="COMMAND", help="leave out what begins with this")
    parser.add_argument("--shell", metavar="COMMAND", help="bash on another machine, in the project's folder there")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", help="another text to read")
    parser.add_argument("--list", action="store_true", help="show what would be done, do nothing")
    setting = parser.parse_args()
    steps = [Step(block) for block in markdown.read(setting.readme.read_text(encoding="utf-8")).blocks]
    if setting.list:
        show(steps)
    elif setting.shell:
        read_aloud(setting, steps, Shell(shlex.split(setting.shell), None))
    else:
        with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as tools:
            read_aloud(setting, steps, Shell(["bash", "--noprofile", "--norc"], like_fresh(home, tools)))


if __name__ == "__main__":
    main()
