"""What the tests of data that is read where it lies have in common: a death meanwhile, and where the programs are."""
import argparse
import os
import signal
import sys
import time
import unittest
from pathlib import Path

PATIENCE = int(os.environ.get("TUTTI_TEST_PATIENCE", "1"))
# Of a job that would go on for long: a death in it is most likely in the middle of a read.
LONG = ["-b", "48M", "-e", "48M", "-n", "100000", "-c", "0"]
DELAYS = (0.3, 0.5, 0.7, 0.9)


def after_the_death_of_rank_1(test, ranks, delay):
    """Kills it: the other ranks end with an error that names it, and by no signal."""
    time.sleep(delay * PATIENCE)
    ranks[1].send_signal(signal.SIGKILL)
    said = [rank.communicate(timeout=120 * PATIENCE)[0] for rank in ranks]
    for rank in (number for number in range(len(ranks)) if number != 1):
        test.assertGreater(ranks[rank].returncode, 0, f"rank {rank} ended by {ranks[rank].returncode}\n{said[rank]}")
        test.assertIn("rank 1", said[rank])


def main(case, doc):
    """Runs the tests of `case`, whose BIN is set to where the programs are."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("TUTTI_BIN_DIR"), help="where the programs are")
    known, rest = parser.parse_known_args()
    case.BIN = Path(known.bin or ".").resolve()
    if not (case.BIN / "all_reduce_perf").exists():
        parser.error(f"--bin: there is no {case.BIN / 'all_reduce_perf'}")
    unittest.main(argv=[sys.argv[0], *rest])
