"""How many instructions a small call takes that was made before, when its peer has done its part: from the C boundary until the
peer, which sleeps, is woken for what has just been posted, and until the call is back.
What is more than the table was put on the way of every small call; what is less belongs into the table."""
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["TUTTI_BIN_DIR"]
CALLS = 40
OWN = 17  # of the program that counts, before the C boundary
COUNTED = {("all_reduce", 8): (348, 808), ("all_gather", 8): (362, 793), ("broadcast", 8): (None, 614)}  # a receiver wakes nobody
MORE, LESS = 1.15, 0.7  # whether the peer sleeps, and is woken once or twice, is a tenth; compilers and C libraries differ a little


def instructions(operation, size):
    """To the first waking, and in all: medians, as a call whose peer was late all the same has looked for it in vain. A peer that
    feels a crowd is patient: it is woken when there is nothing else to do, and one whose core others have does not sleep yet. Nothing is
    said then of when it is woken (None)."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--fair-sched=yes", "--toggle-collect=countedCall", "--dump-after=countedCall",
                   "--dump-before=tutti::link::wake*", "--dump-before=tutti::engine::Lane::settleWakeups*", f"--callgrind-out-file={folder}/out", f"{BIN}/tutti_short_call", operation, str(size), str(CALLS)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=200)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        dumps = [path.read_text() for path in sorted(pathlib.Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))]
    calls = parts_of_calls(dumps)
    if len(calls) != CALLS:
        raise AssertionError(f"{len(calls)} of {CALLS} calls were counted\n{done.stderr}")
    there = [call[0][1] for call in calls if "before" in call[0][0] and "settleWakeups" not in call[0][0]]
    whole = [sum(count for _, count in call) for call in calls]
    return statistics.median(there) - OWN if 4 * len(there) > CALLS else None, statistics.median(whole) - OWN


def parts_of_calls(dumps):
    """Of each call what led to the dumps within it, at a waking or at its end, and what was counted until each."""
    calls, parts = [], []
    for dump in dumps:
        trigger, count = re.search(r"^desc: Trigger: (.*)$", dump, re.M).group(1), int(re.search(r"^totals: (\d+)", dump, re.M).group(1))
        if count > 0:
            parts.append((trigger, count))
        if "dump-after" in trigger and parts:
            calls.append(parts)
            parts = []
    return calls


class ShortPath(unittest.TestCase):
    def test_a_small_call_takes_so_many_instructions(self):
        found = {call: instructions(*call) for call in COUNTED}
        for (operation, size), (there, whole) in found.items():
            print(f"{operation} of {size} bytes: {there or 'not known how many'} instructions to where it wakes its peer, {whole:.0f} in all")
        for call, counted in COUNTED.items():
            for is_, was in zip(found[call], counted):
                if is_ is None or was is None:
                    continue
                with self.subTest(call):
                    self.assertLess(is_, was * MORE)
                    self.assertGreater(is_, was * LESS)


def why_not():
    if platform.machine() != "x86_64":
        return "counted for x86-64"
    return "needs valgrind" if shutil.which("valgrind") is None else ""


if __name__ == "__main__":
    if why_not():
        print(why_not())
        sys.exit(77)
    unittest.main()
