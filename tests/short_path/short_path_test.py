"""How many instructions a small call takes that was made before, from the C boundary and back, when its peer has done its part.
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
COUNTED = {("all_reduce", 8): 1010, ("all_gather", 8): 1000, ("broadcast", 8): 730}
MORE, LESS = 1.15, 0.7  # whether the peer sleeps, and is woken once or twice, is a tenth; compilers and C libraries differ a little


def instructions(operation, size):
    """The median: a call whose peer was late all the same has looked for it in vain."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--fair-sched=yes", "--toggle-collect=countedCall", "--dump-after=countedCall",
                   f"--callgrind-out-file={folder}/out", f"{BIN}/tutti_short_call", operation, str(size), str(CALLS)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=200)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        dumps = [path.read_text() for path in pathlib.Path(folder).glob("out.*")]
    counts = [int(re.search(r"^totals: (\d+)", dump, re.M).group(1)) for dump in dumps]
    counted = [count for count in counts if count > 0]
    if len(counted) != CALLS:
        raise AssertionError(f"{len(counted)} of {CALLS} calls were counted\n{done.stderr}")
    return statistics.median(counted)


class ShortPath(unittest.TestCase):
    def test_a_small_call_takes_so_many_instructions(self):
        found = {call: instructions(*call) for call in COUNTED}
        print("\n".join(f"{operation} of {size} bytes: {count:.0f} instructions" for (operation, size), count in found.items()))
        for call, counted in COUNTED.items():
            with self.subTest(call):
                self.assertLess(found[call], counted * MORE)
                self.assertGreater(found[call], counted * LESS)


def why_not():
    if platform.machine() != "x86_64":
        return "counted for x86-64"
    return "needs valgrind" if shutil.which("valgrind") is None else ""


if __name__ == "__main__":
    if why_not():
        print(why_not())
        sys.exit(77)
    unittest.main()
