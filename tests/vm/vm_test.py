#!/usr/bin/env python3
"""RDMA without a card: the tests of tests/verbs in a virtual machine with a software device (machine.py), where none of them is
skipped.

    tests/vm/vm_test.py --bin build/release/bin

Where there can be no virtual machine the exit status is 77 and the last line says why.
"""
import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine  # noqa: E402  pylint: disable=wrong-import-position


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("TUTTI_BIN_DIR"), help="where the programs are")
    program = Path(parser.parse_args().bin or ".").resolve() / "tutti_verbs_tests"
    if not program.exists():
        parser.error(f"--bin: there is no {program}")
    try:
        status, output = machine.run(f"{program} --gtest_filter='DeviceLink.*'")
    except machine.CannotRun as error:
        print(f"skipped: no virtual machine: {error}")
        return 77
    print(output)
    return 1 if "SKIPPED" in output else status


if __name__ == "__main__":
    sys.exit(main())
