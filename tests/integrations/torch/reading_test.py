"""Does what docs/pytorch.md says, but for what installs the package, which is done, or builds it once more, which is long: the
wheels are wheels_test.py's."""
import subprocess
import sys
import unittest
from pathlib import Path

import jobs
from torch_jobs import environment

ROOT = Path(__file__).resolve().parents[3]
LEFT_OUT = ("pip install", "pip wheel", "auditwheel", "tools/check", "tests/integrations/torch/cuda_build")


class Reading(unittest.TestCase):
    def test_the_first_job(self):
        left_out = [word for one in LEFT_OUT for word in ("--skip", one)]
        read = subprocess.run([sys.executable, str(ROOT / "tests/install/readme_test.py"), "--readme", str(ROOT / "docs/pytorch.md"),
                               *left_out], env=environment(), capture_output=True, text=True, timeout=jobs.SECONDS, check=False)
        self.assertEqual(read.returncode, 0, read.stdout + read.stderr)
        self.assertIn("1 outputs were as it says", read.stdout)


if __name__ == "__main__":
    jobs.main()
