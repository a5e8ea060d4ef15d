"""Runs PyTorch's own tests of its backends, torch.testing._internal.distributed.distributed_test, on a backend that PyTorch does
not know, and says what became of each test.

    pytorch_suite.py --backend tutti --ranks 2 [--strict] [--report out.json] [NAME...]

--backend relay is Gloo behind another name: what it fails, a backend from outside cannot pass. --strict lets the tests that are
for Gloo alone believe that the backend is Gloo. NAME picks tests by a part of their names.
"""
import argparse
import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path


def told():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("tutti", "relay"), default="tutti")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--report", type=Path, help="a JSON file for {test: [outcome, reason]}")
    parser.add_argument("names", nargs="*", metavar="NAME")
    return parser.parse_args()


def make_relay():
    """Gloo, as a backend from outside."""
    import torch.distributed as dist

    def create(options, _):
        return dist.ProcessGroupGloo(options.store, options.group_rank, options.group_size, timeout=options.timeout)

    dist.Backend.register_backend("relay", create, extended_api=True, devices=["cpu", "cuda"])


def load_suite(backend, strict):
    """The module, with decorators that see what `backend` can do. They look at BACKEND while it is loaded."""
    os.environ["BACKEND"] = "gloo" if strict else backend
    import torch  # registers tutti
    from torch.testing._internal.common_distributed import DistTestCases

    if backend == "relay":
        make_relay()
    for feature in ("ddp", "subgroup", "plugin"):
        DistTestCases.backend_feature[feature].add(backend)
    DistTestCases.backend_feature["gpu"] = DistTestCases.backend_feature["cuda"] = {backend}
    from torch.testing._internal.distributed import distributed_test

    distributed_test.BACKEND = backend
    return torch, distributed_test


def suite_class(distributed_test, torch):
    class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        """Ranks are forked: a process that has loaded PyTorch already starts in no time."""

        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return Suite


class Outcomes(unittest.TestResult):
    """{test: [outcome, reason]}, said as they come."""

    def __init__(self):
        super().__init__()
        self.all = {}
        self.begun = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def note(self, test, outcome, reason=""):
        name = test._testMethodName
        self.all[name] = [outcome, reason]
        print(f"{outcome:8} {name} ({time.monotonic() - self.begun:.1f} s){': ' if reason else ''}{reason}", flush=True)

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def addFailure(self, test, err):
        self.note(test, "failed", str(err[1]).strip())

    addError = addFailure


def main():
    args = told()
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/barrier")
        os.environ.update(WORLD_SIZE=str(args.ranks), TEMP_DIR=folder, INIT_METHOD="env://", MASTER_ADDR="127.0.0.1",
                          OMP_NUM_THREADS="1")
        torch, distributed_test = load_suite(args.backend, args.strict)
        tests = unittest.defaultTestLoader.loadTestsFromTestCase(suite_class(distributed_test, torch))
        chosen = unittest.TestSuite(test for test in tests
                                    if not args.names or any(name in test._testMethodName for name in args.names))
        outcomes = Outcomes()
        begun = time.monotonic()
        chosen.run(outcomes)
    counts = {kind: sum(outcome == kind for outcome, _ in outcomes.all.values()) for kind in ("passed", "failed", "skipped")}
    print(f"{args.backend}, {args.ranks} ranks{', strict' if args.strict else ''}: {counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['skipped']} skipped in {time.monotonic() - begun:.0f} s", flush=True)
    if args.report:
        args.report.write_text(json.dumps(outcomes.all, indent=1))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
