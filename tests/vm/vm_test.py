#!/usr/bin/env python3
"""RDMA without a card: what guest_cases.py tries, in a virtual machine with a software device (machine.py), and a job between
two of them on a wire.

    tests/vm/vm_test.py --bin build/release/bin                     all of it: 8 minutes
    tests/vm/vm_test.py --bin build/release/bin --short             what the tests run: 4 minutes
    tests/vm/vm_test.py --bin build/release/bin two_machines        or some of: cases, two_machines
    tests/vm/vm_test.py --bin build/release/bin --only Deaths       cases of guest_cases.py

Where there can be no virtual machine the exit status is 77 and the last line says why.
"""
import argparse
import os
import random
import shlex
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import machine  # noqa: E402  pylint: disable=wrong-import-position

TIMEOUT = 1200  # seconds


def cases(options):
    """Everything that one machine shows."""
    command = ["python3", "-W", "error::SyntaxWarning", HERE / "guest_cases.py", "--bin", options.bin, *(["--quick"] if options.short else []),
               *options.only]
    status, output = machine.run(shlex.join(str(word) for word in command) + " 2>&1", timeout=TIMEOUT)
    print(output)
    return status == 0 and "skipped=" not in output


def two_machines(options):
    """All collectives between two hosts that have nothing but a wire in common."""
    programs = ["all_reduce_perf", "alltoall_perf"] if options.short else sorted(one.name for one in options.bin.glob("*_perf"))
    words = "-b 8 -e 256K -f 32 -n 3 -w 1 -c 1"
    runs = "\n".join(f"timeout 200 {options.bin / name} {words} 2>&1 || exit 1" for name in programs)
    variables = {"TUTTI_SIZE": "2", "TUTTI_ROOT": "10.77.0.1:40177", "TUTTI_SECRET": "vm", "TUTTI_TRANSPORT": "verbs",
                 "TUTTI_DEBUG": "info", "TUTTI_JOIN_TIMEOUT_MS": "120000"}
    port = random.randrange(20000, 30000)
    ends = [machine.Machine(runs, {**variables, "TUTTI_RANK": str(rank)}, address=f"10.77.0.{rank + 1}", processors=1,
                            network=f"{wire}=127.0.0.1:{port}") for rank, wire in enumerate(("listen", "connect"))]
    good = True
    for rank, (status, output) in enumerate([end.end(TIMEOUT) for end in ends]):
        print(f"--- rank {rank}\n{output}")
        good = good and status == 0 and output.count("verbs to rank") >= len(programs)
        good = good and (rank != 0 or output.count("Out of bounds values : 0 OK") == len(programs))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=os.environ.get("TUTTI_BIN_DIR"), help="where the programs are")
    parser.add_argument("--short", action="store_true", help="fewer programs and slots")
    parser.add_argument("--only", nargs="*", default=[], help="classes or tests of guest_cases.py")
    parser.add_argument("parts", nargs="*", default=[], metavar="PART", help="cases, two_machines (both)")
    options = parser.parse_args()
    options.bin = Path(options.bin or ".").resolve()
    if not (options.bin / "all_reduce_perf").exists():
        parser.error(f"--bin: there is no {options.bin / 'all_reduce_perf'}")
    every = {"cases": cases, "two_machines": two_machines}
    unknown = [part for part in options.parts if part not in every]
    if unknown:
        parser.error(f"{unknown[0]}: no part; there are {', '.join(every)}")
    parts = options.parts or (["cases"] if options.only else list(every))
    try:
        return 0 if all([every[part](options) for part in parts]) else 1
    except machine.CannotRun as error:
        print(f"skipped: no virtual machine: {error}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
