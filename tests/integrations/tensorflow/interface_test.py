"""What tutti.tf takes, gives and refuses."""
import subprocess
import sys
import tempfile
import unittest

import jobs
import workers

# Modules that say of themselves what nobody has to install for this.
FAKES = """
import sys
from types import SimpleNamespace
sys.modules["tensorflow"] = SimpleNamespace(__version__="2.x")
sys.modules["keras"] = SimpleNamespace(__version__="{version}", backend=SimpleNamespace(backend=lambda: "{backend}"))
"""


class Interface(workers.WorkersTest):
    def test_two_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            self.workers_do(2, "interface.py", FOLDER=folder)


class Alone(unittest.TestCase):
    def outcome(self, code, **variables):
        return subprocess.run([sys.executable, "-c", code], env=jobs.clean_environment(**variables), capture_output=True,
                              text=True, timeout=workers.SECONDS, check=False)

    def test_without_tensorflow(self):
        done = self.outcome("import sys; sys.modules['tensorflow'] = None\nimport tutti; print('there'); import tutti.tf")
        self.assertEqual(done.stdout, "there\n")
        self.assertIn("ImportError: tutti.tf needs TensorFlow, and ", done.stderr)
        self.assertIn("has no module tensorflow: pip install tensorflow-cpu", done.stderr)

    def test_the_package_itself_does_not_import_it(self):
        done = self.outcome("import sys, tutti; print('tensorflow' in sys.modules)")
        self.assertEqual(done.stdout, "False\n", done.stderr)

    def test_an_older_or_another_keras(self):
        for version, backend, text in (("2.15.0", "tensorflow", "needs Keras 3, and this is Keras 2.15.0 (TensorFlow 2.x)"),
                                       ("3.5.0", "torch", "needs Keras on TensorFlow, and this Keras runs on torch")):
            done = self.outcome(f"{FAKES.format(version=version, backend=backend)}\nimport tutti.tf")
            self.assertIn(f"ImportError: tutti.tf {text}", done.stderr)


if __name__ == "__main__":
    jobs.main()
