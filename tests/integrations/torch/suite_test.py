"""PyTorch's own tests of backends: tutti fails none that Gloo, from outside, does not fail. See pytorch_suite.py.

    suite_test.py           two ranks; what Gloo fails there is known
    suite_test.py --long    two, three and four ranks, each as PyTorch sees a backend that it does not know and as if it were Gloo,
                            and Gloo beside it. Prints the table of docs/measurements
"""
import json
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import jobs
from torch_jobs import environment

SUITE = Path(__file__).resolve().parent / "pytorch_suite.py"
# What Gloo fails as well, as the long form finds. It expects its backend's name to be one of PyTorch's.
GLOO_FAILS = {"test_ddp_logging_data_cpu"}
FEWEST = 60  # would be passed by 2 ranks even if PyTorch took some away


def run(backend, ranks, strict=False):
    """{test: [outcome, reason]} of a run to its end."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, str(SUITE), "--backend", backend, "--ranks", str(ranks), "--report", str(report)]
        done = subprocess.run([*command, *(["--strict"] if strict else [])], env=environment(), cwd=folder, capture_output=True, text=True,
                              timeout=15 * jobs.SECONDS, check=False)
        if not report.exists():
            raise AssertionError(f"{backend}, {ranks} ranks: the suite itself failed\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return json.loads(report.read_text())


def of(outcomes, kind):
    return {test for test, (outcome, _) in outcomes.items() if outcome == kind}


def row(backend, ranks, strict, outcomes):
    counts = Counter(outcome for outcome, _ in outcomes.values())
    mode = "as if it were Gloo" if strict else "as a backend from outside"
    return f"| {ranks} | {mode} | {backend} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |"


class Short(unittest.TestCase):
    def test_two_ranks(self):
        outcomes = run("tutti", 2)
        print(row("tutti", 2, False, outcomes))
        reasons = {test: outcomes[test][1] for test in of(outcomes, "failed") - GLOO_FAILS}
        self.assertFalse(reasons, "\n\n".join(f"{test}: {reason}" for test, reason in reasons.items()))
        self.assertGreaterEqual(len(of(outcomes, "passed")), FEWEST)


class Long(unittest.TestCase):
    def test_all(self):
        print("\n| ranks | mode | backend | passed | failed | skipped |\n|---|---|---|---|---|---|")
        for ranks in (2, 3, 4):
            for strict in (False, True):
                with self.subTest(ranks=ranks, strict=strict):
                    ours, theirs = run("tutti", ranks, strict), run("relay", ranks, strict)
                    print(row("tutti", ranks, strict, ours), row("Gloo", ranks, strict, theirs), sep="\n", flush=True)
                    self.assertFalse(of(ours, "failed") - of(theirs, "failed"), {test: ours[test][1] for test in of(ours, "failed")})
                    self.assertEqual(of(ours, "skipped"), of(theirs, "skipped"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "Long" if "--long" in sys.argv else "Short"], verbosity=2)
